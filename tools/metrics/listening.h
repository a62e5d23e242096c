/* A socket that listens, for libmicrohttpd: of an address in use that says another errno, from
 * version 1.0 on. */
#ifndef TL_TOOLS_LISTENING_H
#define TL_TOOLS_LISTENING_H

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* -1: errno says why not.  MHD_stop_daemon() closes it. */
static inline int listening_socket(const struct sockaddr_in *address)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    int why;

    if (fd < 0 || (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                   bind(fd, (const struct sockaddr *)address, sizeof *address) == 0 &&
                   listen(fd, SOMAXCONN) == 0))
        return fd;
    why = errno;
    close(fd);
    errno = why;
    return -1;
}

#endif
