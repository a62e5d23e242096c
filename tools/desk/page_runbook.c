/* The page Runbook: tools/RUNBOOK.md of this version as it is written, each of its headings a place
 * to go to. */
#include "assets.h"
#include "desk.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* "## Channel down" is #channel-down. */
static void heading(struct page *page, const char *line, size_t size)
{
    const size_t level = strspn(line, "#") + 1;
    char name[64], id[64];

    snprintf(name, sizeof name, "%.*s", (int)(size - level), line + level);
    for (char *c = name; *c != '\0'; c++)
        id[c - name] = *c == ' ' ? '-' : (char)tolower((unsigned char)*c);
    id[strlen(name)] = '\0';
    page_format(page, "</pre>\n<h2 id=\"%s\">%s</h2>\n<pre>", id, name);
}

void page_runbook(struct visit *visit)
{
    struct page *page = &visit->answer->page;
    const struct asset *asset = assets;
    int is_code = 0;

    while (asset->path != NULL && strcmp(asset->path, "/RUNBOOK.md") != 0)
        asset++;
    layout_begin(visit, 200, "Runbook", PLACE_NOW, 0);
    page_put(page, "<section class=\"card runbook\"><h1>Runbook</h1>\n<pre>");
    for (const char *at = asset->text; asset->path != NULL && *at != '\0'; at += *at != '\0') {
        const size_t size = strcspn(at, "\n");

        is_code ^= strncmp(at, "```", 3) == 0;
        if (at[0] == '#' && !is_code) {
            heading(page, at, size);
        } else {
            page_bytes(page, at, size);
            page_put(page, "\n");
        }
        at += size;
    }
    page_put(page, "</pre></section>\n");
    layout_end(visit);
}
