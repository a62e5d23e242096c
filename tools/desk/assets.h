/* The files of the desk, as the build put them into the program (embed.cmake). */
#ifndef DESK_ASSETS_H
#define DESK_ASSETS_H

extern const struct asset {
    const char *path, *type, *text; /* path NULL: the last */
} assets[];

#endif
