/* Binds a step to a statement of sql/step: the statement names its values, and STEP_MAP says where
 * each of them is in the step.  Touches only the connection that it is given. */
#include "store/bind.h"

#include "base/memory.h"
#include "store/mutation.h"

static db_value milliseconds_or_null(int64_t number)
{
    return number < 0 ? db_null() : db_int(number);
}

static db_value next_run_or_null(const step *s)
{
    return s->next_run_ms == STEP_NEVER_MS ? db_null() : db_int(s->next_run_ms);
}

/* One letter, for an ASCII column. */
static db_value letter(const char *c)
{
    return db_bytes(c, 1);
}

/* The word in a row of a group that says what this row may do. */
static const char *group_step(step_kind kind)
{
    if (kind == STEP_ASK_REPEATABLE)
        return "reask";
    return step_rule_of(kind)->ends ? "end" : "ask";
}

/* A row of a group has the payload of an ask, or in its place the token of an ending's hold. */
static db_value payload_or_hold(const step *s)
{
    return step_rule_of(s->kind)->ends ? db_bytes(s->held_token, STEP_TOKEN)
                                       : db_bytes(s->payload, s->payload_size);
}

#define UUID(text) db_uuid(text, *(*uuid)++)
#define FIELD_VALUE(name, value)                                                                   \
    case STEP_FIELD_##name:                                                                        \
        return value;

#define SAID_VALUE(type, name, ...)                                                                \
    case STEP_FIELD_##name:                                                                        \
        return s->said != NULL ? STORE_SAID_##type(s->said, name) : db_null();

static db_value value_of(const step *s, enum step_field field, unsigned char (**uuid)[DB_UUID])
{
    switch (field) {
        STEP_MAP(FIELD_VALUE)
        TL_SAID_MAP(SAID_VALUE)
    case STEP_FIELDS:
        break;
    }
    return db_null();
}

void step_bind(const struct sql_text *statement, const step *s, db_value *values, step_uuids uuids)
{
    unsigned char(*uuid)[DB_UUID] = uuids;

    for (unsigned i = 0; i < statement->values; i++)
        values[i] = value_of(s, (enum step_field)statement->fields[i], &uuid);
}

/* The UUIDs stand behind the values. */
db_value *step_bind_all(const struct sql_text *statement, step *const *steps, size_t count)
{
    const size_t each = statement->values * sizeof(db_value) + sizeof(step_uuids);
    db_value *values = memory_new_array(count, each);
    step_uuids *uuids;

    if (values == NULL)
        return NULL;
    uuids = (step_uuids *)(values + count * statement->values);
    for (size_t i = 0; i < count; i++)
        step_bind(statement, steps[i], values + i * statement->values, uuids[i]);
    return values;
}

db_answer store_called(db *connection, db_answer answer, const struct sql_text *left,
                       db_result *result)
{
    if (answer == DB_DONE)
        return db_run(connection, left, NULL, 0, result);
    return answer == DB_ERROR ? db_undo(connection) : answer;
}

db_answer step_run(db *connection, const struct sql_text *statement, const step *s, store_way way,
                   db_result *result)
{
    const struct sql_text *as_ruled = store_mutated(statement);
    db_value values[STEP_FIELDS];
    step_uuids uuids;

    step_bind(as_ruled, s, values, uuids);
    switch (way) {
    case STORE_NOWAIT:
        return db_run_nowait(connection, as_ruled, values, as_ruled->values, result);
    case STORE_CALLBACK_TX:
    case STORE_CALLBACK_TX_NOWAIT:
        return db_callback_tx_begin(connection, as_ruled, values, as_ruled->values,
                                    way == STORE_CALLBACK_TX_NOWAIT, result);
    default:
        return db_run(connection, as_ruled, values, as_ruled->values, result);
    }
}
