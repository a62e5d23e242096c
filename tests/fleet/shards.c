#include "shards.h"

#include "support/theme.h"

#include <tradelock/admin.h>

#include <errno.h>
#include <sys/stat.h>

const char *const shards_names[SHARDS_MOST] = {"a", "b", "c", "d"};

static char *file_text(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t space = 0;

    if (file == NULL || getdelim(&text, &space, '\0', file) < 0)
        server_panic("%s: %s", path, strerror(errno));
    fclose(file);
    return text;
}

void shards_make_at(shards *self, server *const where[], size_t count)
{
    char path[512], *schema;

    memset(self, 0, sizeof *self);
    self->count = count;
    snprintf(path, sizeof path, "%s/workflows/withdraw/schema.sql", test_source_dir());
    schema = file_text(path);
    for (size_t i = 0; i < count; i++) {
        self->where[i] = where[i];
        self->db[i] = database_new(self->where[i], SHARDS_SETTINGS);
        self->sql[i] = database_connect(self->db[i]);
        database_run(self->sql[i], "%s", schema);
    }
    free(schema);
    snprintf(self->file, sizeof self->file, "%s.fleet", database_option_file(self->db[0]));
}

void shards_make(shards *self, size_t count)
{
    server *where[SHARDS_MOST] = {NULL};

    for (size_t i = 0; i < count; i++)
        where[i] = server_start(NULL);
    shards_make_at(self, where, count);
}

static tl_client *plain_client(const shards *self, size_t i)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.flags = TL_CLIENT_NO_SESSION;
    options.config_file = database_option_file(self->db[i]);
    if (tl_client_open(&client, &options) != TL_OK)
        server_panic("shard %zu: %s", i, tl_error_message());
    return client;
}

void shards_join(shards *self, size_t i, unsigned from, unsigned end)
{
    unsigned char slots[TL_FLEET_SLOTS] = {0};
    tl_fleet_joining joining = TL_FLEET_JOINING_INIT;
    tl_fleet_joined joined = {0};
    tl_client *clients[SHARDS_MOST];

    memset(slots + from, 1, end - from);
    joining.fleet = "payouts";
    joining.shard = shards_names[i];
    joining.slots = slots;
    for (size_t k = 0; k < self->count; k++)
        clients[k] = plain_client(self, k);
    if (tl_fleet_join(clients, self->count, i, &joining, &joined) != TL_OK)
        server_panic("shard %zu does not join: %s", i, tl_error_message());
    for (size_t k = 0; k < self->count; k++)
        tl_client_close(clients[k]);
}

void shards_write(shards *self, const char *names, const size_t at[], const char *settings)
{
    mode_t mask = umask(077);
    char list[256], *name, *rest = NULL;
    FILE *file = fopen(self->file, "we");

    umask(mask);
    if (file == NULL)
        server_panic("%s cannot be written: %s", self->file, strerror(errno));
    fprintf(file, "[tradelock]\n%sfleet=payouts\nshards=%s\n",
            settings != NULL ? settings : SHARDS_SETTINGS, names);
    fprintf(file, "[tradelock-client]\nuser=%s\ndatabase=nowhere\n", server_user(self->where[0]));
    snprintf(list, sizeof list, "%s", names);
    for (name = strtok_r(list, ", ", &rest); name != NULL; name = strtok_r(NULL, ", ", &rest), at++)
        fprintf(file, "[tradelock-client-%s]\nsocket=%s\ndatabase=%s\n", name,
                server_socket(self->where[*at]), database_name(self->db[*at]));
    if (fclose(file) != 0)
        server_panic("%s cannot be written: %s", self->file, strerror(errno));
}

static void join_all(shards *self)
{
    static const char *const lists[] = {"", "a", "a, b", "a, b, c", "a, b, c, d"};
    static const size_t straight[] = {0, 1, 2, 3};
    const unsigned count = (unsigned)self->count, part = TL_FLEET_SLOTS / count;

    for (unsigned i = 0; i < count; i++)
        shards_join(self, i, i * part, i + 1 == count ? TL_FLEET_SLOTS : (i + 1) * part);
    shards_write(self, lists[count], straight, NULL);
}

void shards_open(shards *self, size_t count)
{
    shards_make(self, count);
    join_all(self);
}

void shards_open_shared(shards *self, size_t count)
{
    server *const where[] = {server_shared(), server_shared(), server_shared(), server_shared()};

    shards_make_at(self, where, count);
    self->is_shared = 1;
    join_all(self);
}

void shards_close(shards *self)
{
    unlink(self->file);
    for (size_t i = 0; i < self->count; i++) {
        mysql_close(self->sql[i]);
        database_free(self->db[i]);
        if (!self->is_shared)
            server_free(self->where[i]);
    }
}

/* Bit by bit, as the server's CRC32() does it. */
static unsigned slot_of(const char *cust_no)
{
    uint32_t crc = UINT32_MAX;

    for (; *cust_no != '\0'; cust_no++) {
        crc ^= (unsigned char)*cust_no;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ UINT32_C(0xedb88320) : crc >> 1;
    }
    return ~crc % TL_FLEET_SLOTS;
}

const char *shards_cust(const shards *self, size_t i, unsigned n, char to[TL_CUST_MAX + 1])
{
    const size_t part = TL_FLEET_SLOTS / self->count;

    for (unsigned number = 0;; number++) {
        size_t shard;

        snprintf(to, TL_CUST_MAX + 1, "C%u", number);
        shard = slot_of(to) / part;
        if ((shard < self->count ? shard : self->count - 1) == i && n-- == 0)
            return to;
    }
}

void shards_account(shards *self, size_t i, const char *cust_no, long long balance_minor)
{
    database_run(self->sql[i],
                 "INSERT INTO account (cust_no, currency, balance_minor) "
                 "VALUES ('%s', 'EUR', %lld)",
                 cust_no, balance_minor);
}

tl_status shards_fleet(const shards *self, tl_fleet **fleet)
{
    tl_client_options client = TL_CLIENT_OPTIONS_INIT;
    tl_fleet_options options = TL_FLEET_OPTIONS_INIT;

    client.config_file = self->file;
    client.program = "test";
    options.client = &client;
    return tl_fleet_open(fleet, &options);
}

void shards_hand_over(shards *self, size_t from, size_t to, unsigned slot)
{
    const long long version =
        database_number(self->sql[from], "SELECT version FROM tl_slot WHERE slot = %u", slot) + 1;

    database_run(self->sql[from],
                 "UPDATE tl_slot SET state = 'gone', sealed = 0, other = '%s', version = %lld "
                 "WHERE slot = %u",
                 shards_names[to], version, slot);
    database_run(self->sql[to],
                 "REPLACE INTO tl_slot (slot, state, version) VALUES (%u, 'owned', %lld)", slot,
                 version);
}

tl_status shards_move(const shards *self, size_t from, size_t to, unsigned slot,
                      tl_slot_step_fn progress, void *context)
{
    static const char *const tables[] = {"account", "withdraw_order", "ledger"};
    tl_client *source = plain_client(self, from), *target = plain_client(self, to);
    tl_slot_moving moving = TL_SLOT_MOVING_INIT;
    tl_status status;

    moving.slot = slot;
    moving.actor = "ann";
    moving.reason = "test";
    moving.wait_ms = 120000;
    moving.tables = tables;
    moving.tables_count = sizeof tables / sizeof tables[0];
    moving.progress = progress;
    moving.context = context;
    status = tl_slot_move(source, target, &moving, NULL);
    if (status != TL_OK)
        fprintf(stderr, "slot %u: %s\n", slot, tl_error_message());
    tl_client_close(source);
    tl_client_close(target);
    return status;
}

#define GONE "WHERE tl_customer_slot(cust_no) IN (SELECT slot FROM tl_slot WHERE state = 'gone')"

void shards_clean(const shards *self)
{
    static const char *const tables[] = {"account", "withdraw_order", "ledger", "trade_lock"};

    for (size_t i = 0; i < self->count; i++)
        for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
            database_run(self->sql[i], "DELETE FROM %s " GONE, tables[t]);
}

void shards_stop(shards *self, size_t i)
{
    server_freeze(self->where[i]);
}

void shards_go_on(shards *self, size_t i)
{
    server_thaw(self->where[i]);
}

void shards_kill(shards *self, size_t i)
{
    server_kill9(self->where[i]);
}

void shards_restart(shards *self, size_t i)
{
    server_restart(self->where[i]);
    mysql_close(self->sql[i]);
    self->sql[i] = database_connect(self->db[i]);
}
