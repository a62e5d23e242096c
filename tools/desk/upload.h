/* A form with a file (multipart/form-data), taken apart while it arrives. */
#ifndef DESK_UPLOAD_H
#define DESK_UPLOAD_H

#include "form.h"

#include <stddef.h>

/* About 100,000 payments. */
#define UPLOAD_FILE_MOST ((size_t)8 * 1024 * 1024)

struct MHD_Connection;
struct upload;

/* NULL: it is no such form, or there is no memory. */
struct upload *upload_begin(struct MHD_Connection *connection);
void upload_take(struct upload *upload, const char *data, size_t size);
/* After the last byte: its fields, which live as long as the upload.  0: it is not whole, or no
 * form of ours has such fields. */
int upload_end(struct upload *upload, struct form *form);
void upload_free(struct upload *upload);

int upload_is_too_big(const struct upload *upload);
/* The file as it came, and the name that its sender gave it; NULL: none was chosen. */
const char *upload_file(const struct upload *upload, size_t *size);
const char *upload_name(const struct upload *upload);

#endif
