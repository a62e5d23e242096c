/* A client begins and ends: its session's row is there before anybody can ask. */
#include "operations.h"

#include "support/theme.h"

static void prepare_nothing(scene *s)
{
    (void)s;
}

/* Somebody who sees a lock of this client must be able to see that it lives. */
static int is_seen_alive(scene *s, const tl_client *client)
{
    return database_number(s->sql,
                           "SELECT COUNT(*) FROM tl_session WHERE session_id='%s' AND "
                           "ended_at IS NULL",
                           tl_client_session(client)) == 1;
}

static tl_status call_open(scene *s)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    tl_status status;

    options.config_file = s->patient_file;
    options.program = "born";
    options.flags = TL_CLIENT_NO_JANITOR;
    status = tl_client_open(&client, &options);
    if (status != TL_OK)
        return status;
    if (!is_seen_alive(s, client))
        status = TL_INTERNAL;
    tl_client_close(client);
    return status;
}

static tl_status write_book(tl_books *books)
{
    tl_book *book = scene_pages(books, PAGES_SUCCESS);
    tl_status status = book != NULL ? tl_book_check(book) : TL_NO_MEMORY;

    tl_book_free(book);
    return status;
}

static tl_status call_declare(scene *s)
{
    tl_books *books = NULL;
    tl_status status = scene_declare(&books, s->far);

    if ((status == TL_OK) != (books != NULL))
        return tl_error_report(TL_INTERNAL, "books without their answer, or the other way round");
    return status == TL_OK ? write_book(books) : status;
}

static const operation operations[] = {
    {"open and close a client", 0, prepare_nothing, call_open, TL_OK, "-", "-", 0, 0, NULL},
    {"declare books, and write one", 0, prepare_nothing, call_declare, TL_OK, "-", "-", 0, 0, NULL},
};

const struct operations operations_client = {"client", operations,
                                             sizeof operations / sizeof *operations};
