/*
 * Machines of a test: network namespaces at one switch, whose packets can be lost in either
 * direction between any two of them.  The test itself is the machine 0, in a namespace of its own;
 * they have no names, so nothing is left of them once their processes have ended, however that was.
 */
#ifndef TESTS_TOWN_NETS_H
#define TESTS_TOWN_NETS_H

#define NETS_MACHINES 3
#define NETS_HERE 0

/* Before any thread is begun.  0, or -1 where the kernel refuses network namespaces. */
int nets_open(void);
/* "10.99.0.1" */
const char *nets_address(unsigned machine);
/* What this thread starts from here on runs there. */
void nets_enter(unsigned machine);

/* Packets from one to the other are lost, in silence. */
void nets_lose(unsigned from, unsigned to);
/* Both ways, with everybody. */
void nets_cut(unsigned machine);
/* Everything arrives again. */
void nets_heal(void);

#endif
