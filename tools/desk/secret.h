/* Random words and opaque references.  Nothing of what they stand for can be read from them. */
#ifndef DESK_SECRET_H
#define DESK_SECRET_H

#include <stddef.h>

/* 128 bits in letters that a URL and a cookie take as they are. */
#define SECRET_TEXT 23
#define SECRET_KEY 32

/* Ends the process if the system has no random numbers. */
void secret_random(void *to, size_t size);
void secret_word(char to[SECRET_TEXT]);
/* The same word for the same data, for whoever has the key. */
void secret_mark(char to[SECRET_TEXT], const unsigned char key[SECRET_KEY], const void *data,
                 size_t size);
/* Compares without telling by its time where they differ. */
int secret_equal(const char *one, const char *other);

#endif
