/*
 * Part of every program.  A standard stream that is closed when a program starts is the number that
 * its next file or connection gets, and what is printed goes there: into the middle of a
 * conversation with the server, or into a ledger.  So the numbers are taken before main(), by
 * something that answers "bad file descriptor" to every use.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void take_standard_streams(void)
{
    /* Each open() gets the lowest free number, and those below are taken by now. */
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++)
        if (fcntl(number, F_GETFD) < 0 &&
            open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) != number)
            abort();
}
