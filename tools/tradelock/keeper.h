/*
 * The keeper of a command: a process between this one and the command, which lasts as long as
 * anything that the command started, and ends all of it when this process dies, or is stopped for so
 * long that the lock may be another's soon.
 */
#ifndef TRADELOCK_KEEPER_H
#define TRADELOCK_KEEPER_H

#include <stdint.h>
#include <sys/types.h>

typedef struct keeper {
    char **command;
    int64_t kill_after_ms; /* from SIGTERM to SIGKILL */
    pid_t pid;
    int to;                   /* the socket that it listens to */
    struct keeper_lock *lock; /* shared with it */
    int own_group; /* the command leads a process group of its own: stdin is no terminal */
} keeper;

/* Makes the keeper, which waits.  1: done; 0: errno.  Needs: command and kill_after_ms are set, and
 * this process has one thread, whose signals are blocked but for those of `before`, which the
 * command gets. */
int keeper_make(keeper *self, const void *before);
/* At at_ms (CLOCK_BOOTTIME) the lock was certain for left_ms more, without another word.  When no
 * later one comes the keeper ends all that the command started, so early that it is over by then. */
void keeper_certain(keeper *self, int64_t at_ms, int64_t left_ms);
/* 1: the keeper ended it so. */
int keeper_gave_up(const keeper *self);
/* Begins the command. */
int keeper_go(const keeper *self);
/* The command, or with stdin no terminal its process group, gets the signal. */
void keeper_signal(const keeper *self, int number);
/* All that the command started gets SIGTERM, and what is left later SIGKILL. */
void keeper_end(const keeper *self);

/* After SIGCHLD.  1: all has ended, and *code is what the command ended with, as a shell tells it.
 * A keeper that was killed leaves what it kept to this process, which then ends it. */
int keeper_is_over(keeper *self, int *code);

#endif
