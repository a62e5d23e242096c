/* Sentences about problems, and memory that is there or ends the program. */
#include "problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool problem_set(struct problem *problem, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(problem->text, sizeof(problem->text), format, arguments);
    va_end(arguments);
    /* Sentences quote what clients send, and end in JSON, terminals and logs. */
    for (char *place = problem->text; *place; place++) {
        if (*place < ' ' || *place > '~')
            *place = '?';
    }
    return false;
}

void *memory_need(void *pointer)
{
    if (!pointer) {
        fputs("tradelock-simulator: out of memory\n", stderr);
        _exit(1);
    }
    return pointer;
}

void *memory_new(size_t size)
{
    return memory_need(calloc(1, size));
}
