/* The desk of operators: what its parts share. */
#ifndef DESK_DESK_H
#define DESK_DESK_H

#include "form.h"
#include "logins.h"
#include "page.h"
#include "refs.h"
#include "sessions.h"

#include <stdint.h>

struct options;
struct upload;
struct now_keeper;
struct audit_keeper;

/* Fixed after the start, but for what guards itself. */
struct desk {
    const struct options *options;
    const char *origin_scheme; /* "https" where the browser speaks TLS */
    struct sessions *sessions;
    struct logins logins;
    struct refs *refs;
    struct now_keeper *now;
    struct audit_keeper *audit;
};

/* A request that has arrived whole. */
struct request {
    const char *method, *path;
    struct form query, body;
    int body_is_form;
    const struct upload *upload; /* NULL: no file came with it */
    const char *cookie;          /* of the session, "" without one */
    const char *login_cookie;
    const char *host, *origin, *fetch_site; /* headers, "" without one */
    const char *address;
    int is_refresh; /* by the page's script: does not count as somebody's hand */
    int too_big;
    int is_too_many; /* others send files just now, and this one was not read */
};

/* What is sent back. */
struct answer {
    unsigned status;
    const char *type; /* NULL: a page */
    struct page page;
    char location[256];   /* "": none */
    char set_cookie[160]; /* "": none */
    char set_login_cookie[160];
    unsigned retry_after_s; /* 0: not said */
    int may_be_kept;        /* a file that never changes while the desk runs */
};

/* One request of somebody who is logged in. */
struct visit {
    struct desk *desk;
    const struct request *request;
    struct answer *answer;
    struct session *session;
    /* The shard that is worked at; of one database that one, from the start. */
    size_t shard;
    tl_client *client; /* NULL: none yet, or it cannot be asked */
    tl_account account;
    const char *find; /* what the page is about, for the search on it; or NULL */
};

/* routes.c: decides what a request is for. */
void desk_answer(struct desk *desk, const struct request *request, struct answer *answer);
/* Whether a file may be sent there, by whoever has this cookie. */
int desk_takes_file(struct desk *desk, const char *path, const char *cookie);

/* visit.c.  TL_OK: it is worked at this shard from now on; or why it cannot be asked. */
tl_status visit_go_to(struct visit *visit, size_t shard);
/* At the one that has the customer; as shards_owner(). */
tl_status visit_go_to_owner(struct visit *visit, const char *cust_no);
/* At the shard that a form of a fleet names; 0: it cannot be, and that was answered. */
int visit_go_to_sent(struct visit *visit);
/* 0: not there, and that was answered. */
int visit_may_decide(struct visit *visit);
int visit_is_of_fleet(const struct visit *visit);
/* "" of one database. */
const char *visit_shard(const struct visit *visit);

/* As said_by(), without the shard's name before it. */
const char *said_at(const char *shard, tl_status status);

/* A shard that could not be asked, while the others are shown. */
struct missing {
    int is;
    char why[512];
};
void missing_keep(struct missing *missing, const struct visit *visit, tl_status status);
/* Says so, if it is. */
void missing_tell(struct visit *visit, size_t shard, const struct missing *missing);

/* layout.c */
enum place {
    PLACE_NOW,
    PLACE_INBOX,
    PLACE_TRADES,
    PLACE_CHANNELS,
    PLACE_REPORTS,
    PLACE_AUDIT,
    PLACE_ACTS,
    PLACE_DOCTOR,
    PLACE_NONE
};
/* Until layout_end() what is written stands in the middle of the page.  refresh_s 0: it stays as
 * it is. */
void layout_begin(struct visit *visit, unsigned status, const char *title, enum place place,
                  unsigned refresh_s);
/* The same for a screen that nobody touches: without a bar, read again by the browser. */
void layout_wall(struct visit *visit, const char *title, unsigned refresh_s);
void layout_end(struct visit *visit);
/* A whole page with one sentence. */
void layout_sentence(struct visit *visit, unsigned status, const char *title, const char *sentence);
/* What no page of ours sends. */
void layout_no_form(struct visit *visit, const char *sentence);
/* What was sent was not done, since the database cannot be asked. */
void layout_not_now(struct visit *visit, tl_status status);
/* The same for somebody who is not logged in. */
void layout_stranger(struct answer *answer, unsigned status, const char *title,
                     const char *sentence);
void layout_login(struct desk *desk, struct answer *answer, unsigned status, const char *user,
                  const char *sentence);
void layout_redirect(struct answer *answer, const char *path, const char *ref);
/* The hidden field without which nothing that is sent is done. */
void layout_token(struct visit *visit);
/* What the last call of the library said, else what the status means. */
const char *said_by(tl_status status);
/* The HTTP status that tells the same. */
unsigned http_of(tl_status status);

/* The pages; each has a file of its own. */
void page_now(struct visit *visit);
void page_wall(struct visit *visit);
void page_runbook(struct visit *visit);
void page_trades(struct visit *visit);
void page_search(struct visit *visit); /* POST */
void page_trade(struct visit *visit);
void page_decide(struct visit *visit);
void page_decided(struct visit *visit); /* POST */
void page_many(struct visit *visit);
void page_many_decided(struct visit *visit); /* POST */
void page_channels(struct visit *visit);
void page_channel_decided(struct visit *visit); /* POST */
void page_report(struct visit *visit);
void page_inbox(struct visit *visit);
void page_acts(struct visit *visit);
void page_doctor(struct visit *visit);
void page_audit(struct visit *visit);
void page_audit_start(struct visit *visit); /* POST */
void page_statement(struct visit *visit);   /* POST, with a file */
void page_file(struct visit *visit);
void page_filed(struct visit *visit); /* POST */
void page_finding(struct visit *visit);
void page_finding_closed(struct visit *visit); /* POST */

#endif
