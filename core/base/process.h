/* In which process the code runs: what a fork() makes unusable is recognised by it. */
#ifndef TL_BASE_PROCESS_H
#define TL_BASE_PROCESS_H

/* Changes in the child of every fork().  A handle keeps the generation it was made in; another one
 * now means TL_WRONG_PROCESS. */
unsigned process_generation(void);

#endif
