/* A settings file of a test's own. */
#ifndef TL_TESTS_BASE_SETTINGS_FILE_H
#define TL_TESTS_BASE_SETTINGS_FILE_H

#include "base/config.h"

#include <sys/types.h>

extern char settings_folder[];
extern char settings_path[];

/* Setup and teardown of a group. */
int settings_make_folder(void **state);
int settings_remove_folder(void **state);

void settings_write(const char *text, size_t size, mode_t mode);

/* Writes the text as a file of mode 0600 and loads it. */
tl_status settings_load(const char *text, struct config *config);

/* Taken, and no sentence left: one is shown when it was not. */
void assert_loads(const char *text, struct config *config);

/* Refused with the file's name and the rest of the sentence, and nothing is changed. */
void assert_refused(const char *text, const char *rest);

#endif
