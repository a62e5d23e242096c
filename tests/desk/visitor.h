/* Somebody who visits a real desk over HTTP, and the desk. */
#ifndef TESTS_DESK_VISITOR_H
#define TESTS_DESK_VISITOR_H

#include <stddef.h>
#include <sys/types.h>

struct desk_process {
    pid_t pid;
    char url[64], log[300];
};

/* Starts `tradelock desk` with this settings file and these more options, up to NULL; port 0. */
void desk_start(struct desk_process *desk, const char *config, const char *const *options);
/* Ends it; its exit code must be 0. */
void desk_stop(struct desk_process *desk);

/* With cookies of their own, which redirects do not follow. */
struct visitor {
    void *curl;
    const char *url;
    long status;
    char *body, *headers;
    size_t body_size, headers_size;
};

void visitor_open(struct visitor *visitor, const struct desk_process *desk);
void visitor_close(struct visitor *visitor);
void visitor_get(struct visitor *visitor, const char *path);
/* A header besides, or NULL. */
void visitor_get_with(struct visitor *visitor, const char *path, const char *header);
/* Pairs of name and value, up to NULL. */
#define visitor_post(visitor, path, header, ...)                                                   \
    visitor_post_fields(visitor, path, header, (const char *const[]){__VA_ARGS__, NULL})
void visitor_post_fields(struct visitor *visitor, const char *path, const char *header,
                         const char *const *fields);
void visitor_post_bytes(struct visitor *visitor, const char *path, size_t size);
/* A form with a token and one file, as browsers send it. */
void visitor_post_file(struct visitor *visitor, const char *path, const char *token,
                       const char *name, const char *data, size_t size);
/* The same, in the form of a bank, and without some of its lines. */
void visitor_post_file_as(struct visitor *visitor, const char *path, const char *token,
                          const char *name, const char *data, size_t size, const char *profile,
                          const char *aside);
/* Takes the login form and sends it. */
void visitor_login(struct visitor *visitor, const char *user, const char *password);

/* The value of the first hidden field of this name on the page; "" without one. */
const char *visitor_field(const struct visitor *visitor, const char *name);
/* The first link on the page that begins so, as a path. */
const char *visitor_link(const struct visitor *visitor, const char *begins);

/* Fails the test, showing the page. */
void visitor_expect(const struct visitor *visitor, long status, const char *words, const char *file,
                    int line);
#define EXPECT_PAGE(visitor, status, words)                                                        \
    visitor_expect(visitor, status, words, __FILE__, __LINE__)
void visitor_expect_none(const struct visitor *visitor, const char *words, const char *file,
                         int line);
#define EXPECT_NONE(visitor, words) visitor_expect_none(visitor, words, __FILE__, __LINE__)

/* ------------------------------------------------------------------ going about -- */

/* Opens it and logs in, with the tests' password. */
void visitor_come_in(struct visitor *visitor, const struct desk_process *desk, const char *user);
/* Logs out and closes it: an account has so many sessions, and no more. */
void visitor_leave(struct visitor *visitor);
/* Searches for this trade of customer C1, and returns its reference. */
const char *visitor_find(struct visitor *visitor, const char *serial);
/* Opens the page Decide of this trade. */
const char *visitor_decide(struct visitor *visitor, const char *serial);
/* Sends a half of a decision as the page Decide has it. */
void visitor_send_half(struct visitor *visitor, const char *act, const char *ref, const char *as,
                       const char *fence);

#endif
