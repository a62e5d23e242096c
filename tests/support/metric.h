/* One number of what tl_metrics_write() writes; only for tests that link the library. */
#ifndef TESTS_SUPPORT_METRIC_H
#define TESTS_SUPPORT_METRIC_H

#include <tradelock/metrics.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct metric_page {
    char *text;
    size_t size;
} metric_page;

static inline int metric_take(void *context, const char *text, size_t size)
{
    metric_page *page = (metric_page *)context;

    page->text = (char *)realloc(page->text, page->size + size + 1);
    if (page->text == NULL)
        abort();
    memcpy(page->text + page->size, text, size);
    page->size += size;
    page->text[page->size] = '\0';
    return 0;
}

/* Of the line that begins with this name and, where it has some, these labels; -1: there is
 * none. */
static inline double metric_of(const tl_client *client, const char *name)
{
    metric_page page = {NULL, 0};
    double value = -1;
    const size_t size = strlen(name);

    if (tl_metrics_write(client, metric_take, &page) != TL_OK)
        abort();
    for (const char *line = page.text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, size) == 0 && line[size] == ' ')
            value = strtod(line + size, NULL);
    }
    free(page.text);
    return value;
}

#endif
