/* Tells a process from its parent, so that what a fork() makes unusable is recognised. */
#ifndef TL_BASE_PROCESS_H
#define TL_BASE_PROCESS_H

/* A number that is different in the child of every fork().  A handle keeps the number of the
 * process that made it; in any other process its calls answer TL_WRONG_PROCESS. */
unsigned process_generation(void);

#endif
