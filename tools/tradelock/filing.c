/* Tells which payments of a statement are filed, and files one.  What contradicts a trade is
 * the library's word, or that of another payment of the file. */
#include "filing.h"

#include "print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static int compare(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "");
}

static int compare_payments(const void *left, const void *right)
{
    const tl_payment *a = left, *b = right;
    int order = compare(a->serial_no, b->serial_no);

    if (order == 0)
        order = compare(a->cust_no, b->cust_no);
    if (order == 0)
        order = compare(a->op_code, b->op_code);
    if (order == 0)
        order = compare(a->channel_key, b->channel_key);
    if (order == 0)
        order = compare(a->channel_ref, b->channel_ref);
    if (order == 0)
        order = compare(a->amount.currency, b->amount.currency);
    return order != 0 ? order
                      : (a->amount.amount_minor > b->amount.amount_minor) -
                            (a->amount.amount_minor < b->amount.amount_minor);
}

/* Whoever tells the same payment twice tells it once. */
int filing_begin(struct filing *self, struct statement *statement)
{
    tl_payment *payments = statement->payments;
    size_t kept = 0;

    *self = (struct filing){.trades = TL_LIST_END_INIT, .money = TL_LIST_END_INIT};
    self->unknown = statement->unfound;
    if (statement->count > 1)
        qsort(payments, statement->count, sizeof *payments, compare_payments);
    for (size_t i = 0; i < statement->count; i++)
        if (text_or_null(payments[i].cust_no) == NULL)
            self->unknown++;
        else if (kept > 0 && compare_payments(&payments[kept - 1], &payments[i]) == 0)
            self->repeated++;
        else
            payments[kept++] = payments[i];
    statement->count = kept;
    self->rows = calloc(kept + 1, sizeof *self->rows);
    return self->rows != NULL ? 0 : -1;
}

void filing_free(struct filing *self)
{
    free(self->rows);
    self->rows = NULL;
}

static int is_of_same_trade(const tl_payment *a, const tl_payment *b)
{
    return compare(a->serial_no, b->serial_no) == 0 && compare(a->cust_no, b->cust_no) == 0 &&
           compare(a->op_code, b->op_code) == 0;
}

/* As the database compares references: all but blanks counts. */
static int is_same_reference(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, " ");
        b += strspn(b, " ");
        if (*a != *b || *a == '\0')
            return *a == *b;
    }
}

/* Whether the file itself tells of another payment of the trade, which is filed before this one. */
static int is_second(struct filing *self, const tl_payment *payment)
{
    const char *ref = text_or_null(payment->channel_ref);

    if (ref == NULL || payment->amount.amount_minor < 0)
        return 0;
    if (self->paid != NULL && is_of_same_trade(self->paid, payment))
        return !is_same_reference(self->paid->channel_ref, ref);
    self->paid = payment;
    return 0;
}

static const char *effect(const tl_payment_view *paid)
{
    if (paid->contradicts)
        return "contradicts the trade: a conflict";
    if (paid->fence == 0)
        return "makes the trade, lost in a restore";
    return paid->status == 'P' ? "in process: is paid" : "is paid";
}

static void sum_trade(struct filing *self, const tl_payment *payment, const tl_payment_view *paid)
{
    if (paid->fence == 0 || payment->amount.amount_minor < 0)
        return;
    if (self->last == NULL || !is_of_same_trade(self->last, payment))
        tl_list_end_add(&self->trades, paid->currency, paid->amount_minor);
    self->last = payment;
}

static void add_row(struct filing *self, const tl_payment *payment, const tl_payment_view *paid)
{
    struct filing_row *row = &self->rows[self->count++];

    *row = (struct filing_row){.payment = payment,
                               .seen = *paid,
                               .serial_no = payment->serial_no,
                               .cust_no = payment->cust_no,
                               .op_code = payment->op_code,
                               .channel_ref = payment->channel_ref,
                               .effect = effect(paid),
                               .fence = paid->fence,
                               .paid_minor = payment->amount.amount_minor};
    snprintf(row->currency, sizeof row->currency, "%s", paid->currency);
    snprintf(row->paid_currency, sizeof row->paid_currency, "%s",
             payment->amount.is_told ? payment->amount.currency : "");
    row->seen.currency = row->currency;
}

static int take(void *context, const tl_payment_view *of)
{
    struct filing *self = context;
    const tl_payment *payment = &self->payments[of->number];
    tl_payment_view paid = *of;

    sum_trade(self, payment, &paid);
    if (paid.known) {
        self->known++;
        self->standing += paid.contradicts != 0;
        return 0;
    }
    if (paid.fence == 0 && (!self->restored || payment->amount.amount_minor < 0)) {
        self->unknown++;
        return 0;
    }
    paid.contradicts |= !paid.contradicts && is_second(self, payment);
    self->made += paid.fence == 0 && !paid.contradicts;
    self->contradicting += paid.contradicts != 0;
    tl_list_end_add(&self->money, paid.contradicts ? "" : paid.currency, paid.amount_minor);
    add_row(self, payment, &paid);
    return 0;
}

/* The rows of trades that are not there are made while a restore is open. */
tl_status filing_look(struct filing *self, tl_client *client, const tl_payment *payments,
                      size_t count)
{
    tl_restore restore = TL_RESTORE_INIT;
    tl_status status = tl_restore_status(client, &restore, NULL, NULL);

    self->restored = restore.open;
    self->payments = payments;
    return status == TL_OK ? tl_paid_list(client, payments, count, take, self) : status;
}

const char *filing_apart(char to[FILING_APART], const struct filing *self)
{
    snprintf(
        to, FILING_APART,
        "Of them %s contradict the row, and become conflicts for two operators; %s make\na "
        "trade that was lost.  Left alone: %s known already (%s as contradicting),\n%s without "
        "a trade, %s told twice.",
        COUNT_TEXT(self->contradicting), COUNT_TEXT(self->made), COUNT_TEXT(self->known),
        COUNT_TEXT(self->standing), COUNT_TEXT(self->unknown), COUNT_TEXT(self->repeated));
    return to;
}

tl_status filing_one(const struct filing_row *row, tl_client *client, uint64_t act_no,
                     uint64_t row_no, const char *source)
{
    const tl_payment *payment = row->payment;
    const tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                                  .key = {payment->serial_no, payment->cust_no, payment->op_code},
                                  .outcome = "SUCCEEDED",
                                  .source = source,
                                  .channel_key = text_or_null(payment->channel_key),
                                  .channel_ref = text_or_null(payment->channel_ref),
                                  .amount = payment->amount};

    return tl_act_evidence(client, act_no, row_no, &evidence, &row->seen);
}

int filing_is_of_row(tl_status status)
{
    return status == TL_LOST || status == TL_NOT_FOUND;
}
