/* Takes uploads apart.  Keeps bytes in memory, and looks at none of the file's. */
#include "upload.h"

#include "array_room.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP ((size_t)8 * 1024)
#define WORDS 2048u
#define NAME 128u

struct upload {
    struct MHD_PostProcessor *processor;
    struct form form;
    char words[WORDS]; /* names and values of the fields, each with its NUL */
    size_t used;
    char *file, name[NAME];
    size_t size, space;
    int has_file, too_big, failed;
};

static const char *keep(struct upload *upload, const char *data, size_t size)
{
    char *to = upload->words + upload->used;

    if (upload->used + size + 1 > WORDS || memchr(data, '\0', size) != NULL) {
        upload->failed = 1;
        return "";
    }
    memcpy(to, data, size);
    to[size] = '\0';
    upload->used += size + 1;
    return to;
}

/* A part of a field; what continues the last value stands directly behind it. */
static void take_field(struct upload *upload, const char *name, const char *data, uint64_t offset,
                       size_t size)
{
    struct form *form = &upload->form;

    if (offset > 0) {
        upload->used--;
        (void)keep(upload, data, size);
        return;
    }
    if (form->count == FORM_FIELDS) {
        upload->failed = 1;
        return;
    }
    form->fields[form->count].name = keep(upload, name, strlen(name));
    form->fields[form->count++].value = keep(upload, data, size);
}

static void take_file(struct upload *upload, const char *data, size_t size)
{
    if (upload->size + size > UPLOAD_FILE_MOST) {
        upload->too_big = 1;
        return;
    }
    if (!text_room(&upload->file, &upload->space, upload->size + size)) {
        upload->failed = 1;
        return;
    }
    memcpy(upload->file + upload->size, data, size);
    upload->size += size;
}

static enum MHD_Result take(void *context, enum MHD_ValueKind kind, const char *key,
                            const char *filename, const char *type, const char *encoding,
                            const char *data, uint64_t offset, size_t size)
{
    struct upload *upload = context;

    (void)kind, (void)type, (void)encoding;
    if (upload->failed || upload->too_big || key == NULL)
        return MHD_YES;
    if (filename == NULL) {
        take_field(upload, key, size > 0 ? data : "", offset, size);
        return MHD_YES;
    }
    /* A form of ours has one file. */
    if (offset == 0 && upload->has_file)
        upload->failed = 1;
    if (filename[0] == '\0' || upload->failed)
        return MHD_YES;
    upload->has_file = 1;
    snprintf(upload->name, sizeof upload->name, "%s", filename);
    if (size > 0)
        take_file(upload, data, size);
    return MHD_YES;
}

struct upload *upload_begin(struct MHD_Connection *connection)
{
    struct upload *upload = calloc(1, sizeof *upload);

    if (upload == NULL)
        return NULL;
    upload->processor = MHD_create_post_processor(connection, STEP, take, upload);
    if (upload->processor != NULL)
        return upload;
    free(upload);
    return NULL;
}

void upload_take(struct upload *upload, const char *data, size_t size)
{
    if (!upload->failed && !upload->too_big &&
        MHD_post_process(upload->processor, data, size) != MHD_YES)
        upload->failed = 1;
}

int upload_end(struct upload *upload, struct form *form)
{
    if (MHD_destroy_post_processor(upload->processor) != MHD_YES)
        upload->failed = 1;
    upload->processor = NULL;
    *form = upload->form;
    return !upload->failed && !upload->too_big;
}

void upload_free(struct upload *upload)
{
    if (upload == NULL)
        return;
    if (upload->processor != NULL)
        MHD_destroy_post_processor(upload->processor);
    free(upload->file);
    free(upload);
}

int upload_is_too_big(const struct upload *upload)
{
    return upload->too_big;
}

const char *upload_file(const struct upload *upload, size_t *size)
{
    *size = upload->size;
    if (!upload->has_file)
        return NULL;
    return upload->file != NULL ? upload->file : "";
}

const char *upload_name(const struct upload *upload)
{
    return upload->name;
}
