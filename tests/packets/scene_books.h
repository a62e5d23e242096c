/* Of scene.c: the tables that declared books are written into. */
#ifndef TESTS_PACKETS_SCENE_BOOKS_H
#define TESTS_PACKETS_SCENE_BOOKS_H

#include "scene.h"

void scene_books_open(scene *s);

#endif
