/* Makes the books of a client: checks what is declared, by itself and against the schema.  The
 * client frees them. */
#include "books/books.h"

#include "base/error.h"
#include "base/memory.h"
#include "client/client.h"
#include "transition/group.h"

#include <string.h>

/* The books have the statements that connections prepared, by their addresses.  So they are freed
 * when no connection of the client is left. */
static void free_books(tl_books *books)
{
    for (size_t i = 0; i < books->count; i++)
        book_statement_free(&books->statements[i]);
    memory_free(books->statements);
    group_queue_free(books->groups);
    group_queue_free(books->waiting_groups);
    memory_free(books);
}

static void free_all(client_part *part)
{
    while (part != NULL) {
        tl_books *books = (tl_books *)part;

        part = books->next != NULL ? &books->next->part : NULL;
        free_books(books);
    }
}

/* First in the list of the client. */
static void keep(tl_client *client, tl_books *books)
{
    client_part *first = atomic_load(&client->books);

    books->part.free = free_all;
    do
        books->next = (tl_books *)first;
    while (!atomic_compare_exchange_weak(&client->books, &first, &books->part));
}

static tl_status declare(tl_books *books, const tl_statement *given)
{
    book_statement *to = &books->statements[books->count];
    tl_status status = book_declare(to, given);

    books->count++;
    for (size_t i = 0; status == TL_OK && i + 1 < books->count; i++)
        if (strcmp(books->statements[i].name, to->name) == 0)
            status = error_set(TL_INVALID, "statement \"%s\": is declared twice", to->name);
    return status;
}

static tl_status fill(tl_books *books, const tl_statement *statements, size_t count)
{
    tl_client *client = books->client;
    const unsigned connections = pool_size(client->connections, POOL_BOOKS);
    tl_status status = TL_OK;

    books->statements = memory_new_array(count, sizeof *books->statements);
    if (books->statements == NULL ||
        group_queue_new(&books->groups, connections, GROUP_ALONE) != TL_OK ||
        group_queue_new(&books->waiting_groups, connections, 0) != TL_OK)
        return error_set(TL_NO_MEMORY, "out of memory for the books");
    group_queue_pair(books->groups, books->waiting_groups);
    for (size_t i = 0; status == TL_OK && i < count; i++)
        status = declare(books, &statements[i]);
    for (size_t i = 0; status == TL_OK && i < count; i++)
        status = book_check_schema(client, &books->statements[i]);
    return status;
}

static tl_status check_arguments(tl_books **out, const tl_client *client,
                                 const tl_statement *statements, size_t count)
{
    TRY(client_check(client));
    if (out == NULL || statements == NULL)
        return error_set(TL_INVALID, "tl_books_new: out or statements is NULL");
    if (count == 0 || count > TL_BOOK_STATEMENTS)
        return error_set(TL_INVALID, "%zu statements are declared; 1 to %d are possible", count,
                         TL_BOOK_STATEMENTS);
    return TL_OK;
}

tl_status tl_books_new(tl_books **out, tl_client *client, const tl_statement *statements,
                       size_t count)
{
    tl_books *books;
    tl_status status;

    error_clear();
    TRY(check_arguments(out, client, statements, count));
    books = memory_new(sizeof *books);
    if (books == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the books");
    books->client = client;
    status = fill(books, statements, count);
    if (status != TL_OK) {
        free_books(books);
        return status;
    }
    keep(client, books);
    *out = books;
    return error_over(status);
}
