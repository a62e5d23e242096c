/* The sample settings file, made from the one list of settings. */
#ifndef TL_TESTS_BASE_SAMPLE_H
#define TL_TESTS_BASE_SAMPLE_H

#include "base/text.h"

void sample_write(struct text_buffer *to);

#endif
