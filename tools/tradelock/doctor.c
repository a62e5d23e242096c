/* tradelock doctor: prints whether this server is fit for money. Only reads. */
#include "command.h"

#include "fields.h"
#include "fleet.h"
#include "fleet_check.h"
#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <string.h>

struct output {
    struct listing list;
    tl_status status; /* of the first database that is not in order */
    unsigned slots;   /* findings about slots of the fleet */
    int unsafe;       /* one of the fleet is */
};

/* What is of the fleet as a whole is of no shard. */
static int add_finding(void *context, const tl_finding *finding)
{
    struct output *output = context;
    json_t *row = record_json(&record_finding, finding);

    if (fleet_is() && fleet_now() == NULL)
        json_object_set_new(row, "shard", json_null());
    return listing_add_as(&output->list, finding, row);
}

/* What is in order needs no words; what is not gets a sentence each. */
static void print_problems(const json_t *findings)
{
    const json_t *finding;
    size_t i;

    json_array_foreach(findings, i, finding)
    {
        const char *level = json_string_value(json_object_get(finding, "level"));

        const char *shard = json_string_value(json_object_get(finding, "shard"));

        if (strcmp(level, level_name(TL_FINDING_OK)) != 0)
            printf("\n%s%s%s%s, %s: %s.\n", shard != NULL ? "shard " : "",
                   shard != NULL ? shard : "", shard != NULL ? ": " : "", level,
                   json_string_value(json_object_get(finding, "check")),
                   json_string_value(json_object_get(finding, "sentence")));
    }
}

/* What is unsafe, or lacks its schema, has told what it is. */
static int ask_one(tl_client *client, void *context)
{
    struct output *output = context;
    const tl_status status = tl_doctor(client, add_finding, output);

    if (output->status == TL_OK)
        output->status = status;
    if (status == TL_OK)
        return EXIT_DONE;
    return status == TL_SERVER_UNSAFE || exit_code_of(status) == EXIT_SCHEMA ? report(status)
                                                                             : fleet_told(status);
}

/* -------------------------------------------------------------------- a fleet -- */

/* What the shards said of one thing that has to be the same at all of them. */
static void compare(struct output *output, const char *check, tl_finding_level otherwise,
                    const char *sentence)
{
    const char *said = NULL;
    const json_t *finding;
    int differ = 0;
    size_t i;

    json_array_foreach(output->list.rows, i, finding)
    {
        const char *found = json_string_value(json_object_get(finding, "found"));

        if (strcmp(json_string_value(json_object_get(finding, "check")), check) != 0 ||
            found == NULL)
            continue;
        differ |= said != NULL && strcmp(said, found) != 0;
        said = found;
    }
    if (said != NULL) {
        char name[64];
        const tl_finding of_fleet = {.level = differ ? otherwise : TL_FINDING_OK,
                                     .check = name,
                                     .found = differ ? "the shards differ" : said,
                                     .sentence = differ ? sentence : "the same at all shards"};

        snprintf(name, sizeof name, "fleet %s", check);
        add_finding(output, &of_fleet);
    }
}

#define SAMPLE 256

/* The rule is compared by a sample of customers: one that differs for others alone is not seen. */
static void compare_rules(struct output *output)
{
    char names[SAMPLE][16];
    const char *cust_nos[SAMPLE];
    unsigned first[SAMPLE], slots[SAMPLE];
    unsigned asked = 0;
    int differ = 0;

    for (unsigned i = 0; i < SAMPLE; i++) {
        snprintf(names[i], sizeof names[i], "C%u", i * 7919);
        cust_nos[i] = names[i];
    }
    for (size_t i = 0; i < fleet_size(); i++) {
        tl_client *client = fleet_client(i, TL_CLIENT_NO_SCHEMA);

        if (client == NULL || tl_slots_of(client, cust_nos, SAMPLE, slots) != TL_OK)
            continue;
        if (asked++ == 0)
            memcpy(first, slots, sizeof first);
        differ |= memcmp(first, slots, sizeof first) != 0;
    }
    if (asked > 0)
        add_finding(output, &(const tl_finding){
                                .level = differ ? TL_FINDING_UNSAFE : TL_FINDING_OK,
                                .check = "fleet rule",
                                .found = differ ? "the shards differ" : "tl_customer_slot()",
                                .sentence = differ ? "a customer is of one slot at one shard and "
                                                     "of another at another: make the function "
                                                     "tl_customer_slot() the same at all of them"
                                                   : "the same at all shards, by a sample"});
    output->unsafe |= differ;
}

static void add_slots(void *context, const struct fleet_finding *f)
{
    struct output *output = context;
    const int is_unsafe = strcmp(f->rule, "slot-twice") == 0 || strcmp(f->rule, "slot-behind") == 0;
    char found[700];

    snprintf(found, sizeof found, f->first == f->last ? "%u" : "%u-%u", f->first, f->last);
    if (f->shards[0] != '\0')
        snprintf(found + strlen(found), sizeof found - strlen(found), " at %s", f->shards);
    output->slots++;
    output->unsafe |= is_unsafe;
    add_finding(output,
                &(const tl_finding){.level = is_unsafe ? TL_FINDING_UNSAFE : TL_FINDING_WARNING,
                                    .check = f->rule,
                                    .found = found,
                                    .sentence = f->sentence});
}

/* What no database can tell alone.  Its exit code. */
static int ask_fleet(struct output *output)
{
    struct fleet_map map = {.count = 0};
    const int code = fleet_map_read(&map);

    compare(output, "version", TL_FINDING_WARNING,
            "the servers are of different versions: all right while they are upgraded");
    compare(output, "schema", TL_FINDING_WARNING,
            "the schemas differ: `tradelock migrate --shard NAME` at each");
    compare_rules(output);
    fleet_check_slots(&map, add_slots, output);
    if (output->slots == 0)
        add_finding(output, &(const tl_finding){.level = TL_FINDING_OK,
                                                .check = "fleet slots",
                                                .found = "each of one shard",
                                                .sentence = "no slot is owned twice or by nobody"});
    fleet_map_free(&map);
    if (output->unsafe && output->status == TL_OK)
        output->status = TL_SERVER_UNSAFE;
    return output->unsafe ? fleet_code(code, EXIT_UNSAFE) : code;
}

static int work(tl_client *client)
{
    struct output output = {.status = TL_OK};
    int code;

    (void)client;
    listing_begin(&output.list, &record_finding, "level,check,found");
    code = fleet_each(TL_CLIENT_NO_SCHEMA, ask_one, &output);

    if (fleet_is())
        code = fleet_code(code, ask_fleet(&output));

    /* One database that could not be asked has nothing to show. */
    if (!fleet_is() && fleet_client(0, TL_CLIENT_NO_SCHEMA) == NULL) {
        listing_free(&output.list);
        return code;
    }
    if (common.json) {
        code = print_json(
            fleet_document(json_pack("{s:s, s:O}", "status", tl_status_name(output.status),
                                     "findings", output.list.rows)),
            code);
    } else {
        table_print(output.list.table);
        print_problems(output.list.rows);
        code = finish_output(code);
    }
    listing_free(&output.list);
    return code;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "check everything that the guarantees rest on",
    .arguments = "[--json]",
    .text = "Asks the server for its settings, clock, schema, identity and history, for the\n"
            "rights of this account, and for work that nobody does.  Run it with the "
            "account\n"
            "of a service: then it also proves, by a probe that is rolled back, that steps\n"
            "are recorded.\n",
    .examples = "  tradelock doctor\n",
    .of = OF_SHARDS,
    .work = work,
};
