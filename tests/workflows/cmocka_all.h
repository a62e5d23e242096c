/* cmocka with what it wants included before it. */
#ifndef TESTS_WORKFLOWS_CMOCKA_ALL_H
#define TESTS_WORKFLOWS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
