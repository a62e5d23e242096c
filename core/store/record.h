/*
 * Readers of rows that people see, from the maps of tradelock/record.h.  A line X(type, member, ...)
 * becomes the statement that reads the member of `to` from `row` of `result`; AT(member), which
 * whoever reads defines, is where its column stands.  So a member that the struct, the map and the
 * statement do not agree about does not compile.
 */
#ifndef TL_STORE_RECORD_H
#define TL_STORE_RECORD_H

#include "db/db.h"

#include "base/text.h"

#include <tradelock/record.h>

#include <string.h>

#define RECORD_READ(type, member, ...) RECORD_READ_##type(member)

#define RECORD_READ_TEXT(member)                                                                   \
    text_copy(to->member, sizeof to->member, db_get_text(result, row, AT(member)));
#define RECORD_READ_STRING(member) to->member = record_string(result, row, AT(member));
#define RECORD_READ_LETTER(member)                                                                 \
    to->member = db_is_null(result, row, AT(member)) ? ' ' : RECORD_LETTER(member);
#define RECORD_READ_LANE(member) to->member = RECORD_LETTER(member);
#define RECORD_READ_PROOF(member) to->member = RECORD_LETTER(member);
#define RECORD_READ_STATE(member) to->member = view_state(db_get_text(result, row, AT(member)));
#define RECORD_READ_MUTEX(member)                                                                  \
    to->member = resource_state_of(db_get_text(result, row, AT(member)));
#define RECORD_READ_HOLDER(member)                                                                 \
    to->member = holder_state_of(db_get_text(result, row, AT(member)));
#define RECORD_READ_MODE(member)                                                                   \
    to->member = RECORD_LETTER(member) == 'W' ? TL_RW_WRITE : TL_RW_READ;
#define RECORD_READ_DECISION(member) to->member = (tl_decision)RECORD_LETTER(member);
#define RECORD_READ_FLAG(member) to->member = db_get_int(result, row, AT(member)) != 0;
#define RECORD_READ_COUNT(member) to->member = (uint32_t)db_get_uint(result, row, AT(member));
#define RECORD_READ_NUMBER(member) to->member = db_get_uint(result, row, AT(member));
#define RECORD_READ_TIME(member) to->member = db_get_int(result, row, AT(member));
#define RECORD_READ_MONEY(member) to->member = db_get_int(result, row, AT(member));
#define RECORD_READ_HASH(member)                                                                   \
    record_read_exactly(to->member, sizeof to->member, result, row, AT(member));
#define RECORD_READ_BYTES(member)                                                                  \
    to->member = db_get_bytes(result, row, AT(member), &to->member##_size);

#define RECORD_READ_WORDS(member) to->member = db_get_text(result, row, AT(member));
#define RECORD_READ_SOME(member)                                                                   \
    to->member = (__typeof__(to->member))db_get_int(result, row, AT(member));
#define RECORD_READ_SIGNED(member) RECORD_READ_TIME(member)
#define RECORD_READ_SPAN(member) RECORD_READ_TIME(member)
#define RECORD_READ_SPAN_MS(member) RECORD_READ_TIME(member)
#define RECORD_READ_KEY(member)                                                                    \
    to->member =                                                                                   \
        (tl_key){db_get_text(result, row, AT(serial_no)), db_get_text(result, row, AT(cust_no)),   \
                 db_get_text(result, row, AT(op_code))};
/* Made by whoever reads the row. */
#define RECORD_READ_ALSO_WORDS(member)
#define RECORD_READ_ALSO_SOME(member)
#define RECORD_READ_ALSO_SET(member)
#define RECORD_READ_ALSO_FLAG(member)
#define RECORD_READ_ALSO_NUMBER(member)
#define RECORD_READ_ALSO_TIME(member)

#define RECORD_LETTER(member) db_get_text(result, row, AT(member))[0]

static inline const char *record_string(const db_result *result, size_t row, size_t column)
{
    return db_is_null(result, row, column) ? NULL : db_get_text(result, row, column);
}

/* Leaves it as it is where the column has another size. */
static inline void record_read_exactly(unsigned char *to, size_t size, const db_result *result,
                                       size_t row, size_t column)
{
    size_t is;
    const void *bytes = db_get_bytes(result, row, column, &is);

    if (is == size)
        memcpy(to, bytes, size);
}

#endif
