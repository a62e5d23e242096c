/* Which page a request is for, and whether it may have it. */
#include "desk.h"

#include "assets.h"
#include "log_print.h"
#include "options.h"

#include <stdio.h>
#include <string.h>

struct route {
    const char *path;
    void (*get)(struct visit *visit);
    void (*post)(struct visit *visit);
};

static void log_out(struct visit *visit)
{
    session_end(visit->desk->sessions, visit->session);
    snprintf(visit->answer->set_cookie, sizeof visit->answer->set_cookie,
             "tl_desk=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    layout_redirect(visit->answer, "/login", NULL);
}

static const struct route routes[] = {
    {"/", page_now, NULL},
    {"/wall", page_wall, NULL},
    {"/runbook", page_runbook, NULL},
    {"/trades", page_trades, NULL},
    {"/search", NULL, page_search},
    {"/trade", page_trade, NULL},
    {"/decide", page_decide, page_decided},
    {"/many", page_many, page_many_decided},
    {"/channels", page_channels, page_channel_decided},
    {"/reports", page_report, NULL},
    {"/inbox", page_inbox, NULL},
    {"/acts", page_acts, NULL},
    {"/doctor", page_doctor, NULL},
    {"/audit", page_audit, page_audit_start},
    {"/statement", NULL, page_statement},
    {"/file", page_file, page_filed},
    {"/finding", page_finding, page_finding_closed},
    {"/logout", NULL, log_out},
};

/* ------------------------------------------------------------------ checks -- */

/* Browsers say from where a form was sent.  What they say of another site is believed. */
static int is_from_elsewhere(const struct desk *desk, const struct request *request)
{
    char own[300];

    if (request->fetch_site[0] != '\0' && strcmp(request->fetch_site, "same-origin") != 0 &&
        strcmp(request->fetch_site, "none") != 0)
        return 1;
    snprintf(own, sizeof own, "%s://%s", desk->origin_scheme, request->host);
    return request->origin[0] != '\0' && strcmp(request->origin, own) != 0;
}

int desk_takes_file(struct desk *desk, const char *path, const char *cookie)
{
    struct session *session =
        strcmp(path, "/statement") == 0 ? sessions_get(desk->sessions, cookie, 0, 0) : NULL;

    if (session != NULL)
        session_put(desk->sessions, session);
    return session != NULL;
}

/* 0: the request was answered. */
static int check_body(struct desk *desk, const struct request *request, struct answer *answer)
{
    if (request->is_too_many) {
        answer->retry_after_s = 10;
        layout_stranger(answer, 503, "Not now",
                        "Others are sending statements just now. Send it again. Nothing was done.");
        return 0;
    }
    if (request->too_big && request->upload != NULL) {
        layout_stranger(answer, 413, "Too long",
                        "A statement has at most 8 MiB here; `tradelock audit --statement` takes "
                        "longer ones. Nothing was done.");
        return 0;
    }
    if (request->too_big) {
        layout_stranger(answer, 413, "Too long",
                        "What was sent is longer than any form of this desk. Nothing was done.");
        return 0;
    }
    if (strcmp(request->method, "POST") != 0)
        return 1;
    if (is_from_elsewhere(desk, request) || !request->body_is_form) {
        layout_stranger(answer, 403, "Not from this page",
                        "This form was not sent by a page of this desk. Nothing was done.");
        return 0;
    }
    return 1;
}

/* ------------------------------------------------------------------- login -- */

static const char no_such_account[] =
    "Name and password do not fit, or the account has no role of tradelock: an operator needs "
    "DATABASE_operator, everybody else DATABASE_reader.";

/* Who was logged in with this browser cannot be asked for any more: its cookie is replaced. */
static void end_session_before(struct desk *desk, const struct request *request)
{
    struct session *before =
        request->cookie[0] != '\0' ? sessions_get(desk->sessions, request->cookie, 0, 0) : NULL;

    if (before == NULL)
        return;
    session_end(desk->sessions, before);
    session_put(desk->sessions, before);
}

static void log_in_with(struct desk *desk, const struct request *request, struct answer *answer,
                        const char *user)
{
    tl_account account = TL_ACCOUNT_INIT;
    struct shards *shards = NULL;
    struct session *session;
    char why[WHY_TEXT];
    const tl_status status = shards_open(&shards, desk->options, user,
                                         form_get(&request->body, "password"), &account, why);

    if (status == TL_ACCESS_DENIED) {
        logins_failed(&desk->logins, user, request->address);
        layout_login(desk, answer, 403, user, no_such_account);
        return;
    }
    if (why[0] != '\0') {
        logins_failed(&desk->logins, user, request->address);
        layout_login(desk, answer, 403, user, why);
        return;
    }
    if (status != TL_OK) {
        layout_login(desk, answer, 503, user, said_by(status));
        return;
    }
    end_session_before(desk, request);
    session = sessions_add(desk->sessions, user, &account, shards);
    if (session == NULL) {
        layout_login(desk, answer, 503, user,
                     "Too many people are logged in, or this account too often. Log out "
                     "elsewhere, or wait.");
        return;
    }
    log_say(TL_INFO, "%s logged in", account.name);
    snprintf(answer->set_cookie, sizeof answer->set_cookie,
             "tl_desk=%s; Path=/; HttpOnly; SameSite=Strict%s", session->id,
             strcmp(desk->origin_scheme, "https") == 0 ? "; Secure" : "");
    session_put(desk->sessions, session);
    layout_redirect(answer, "/", NULL);
}

static void log_in_in_turn(struct desk *desk, const struct request *request, struct answer *answer,
                           const char *user)
{
    unsigned wait_s;

    logins_take_turn(&desk->logins);
    wait_s = logins_wait_s(&desk->logins, user, request->address);
    if (wait_s > 0) {
        answer->retry_after_s = wait_s;
        layout_login(desk, answer, 429, user,
                     "Too many wrong passwords. Wait a minute, then try again.");
    } else {
        log_in_with(desk, request, answer, user);
    }
    logins_give_turn(&desk->logins);
}

static void log_in(struct desk *desk, const struct request *request, struct answer *answer)
{
    const char *user = form_get(&request->body, "user");

    if (!secret_equal(request->login_cookie, form_get(&request->body, "login_token"))) {
        layout_login(desk, answer, 403, user, "This form was too old. Please try again.");
        return;
    }
    if (user[0] == '\0' || strlen(user) > 128 || form_get(&request->body, "password")[0] == '\0') {
        layout_login(desk, answer, 403, user, "Please type the name and the password.");
        return;
    }
    log_in_in_turn(desk, request, answer, user);
}

/* ----------------------------------------------------------------- routing -- */

static int answer_file(const struct request *request, struct answer *answer)
{
    for (const struct asset *asset = assets; asset->path != NULL; asset++)
        if (strcmp(asset->path, request->path) == 0 && strcmp(request->method, "GET") == 0) {
            answer->status = 200;
            answer->type = asset->type;
            answer->may_be_kept = 1;
            page_put(&answer->page, asset->text);
            return 1;
        }
    return 0;
}

static void answer_stranger(struct desk *desk, const struct request *request, struct answer *answer)
{
    if (strcmp(request->path, "/login") == 0 && strcmp(request->method, "POST") == 0)
        log_in(desk, request, answer);
    else if (strcmp(request->path, "/login") == 0)
        layout_login(desk, answer, 200, "", NULL);
    else if (strcmp(request->method, "POST") == 0)
        layout_login(desk, answer, 403, "",
                     "You are not logged in any more. Nothing was done; log in and look again.");
    else if (request->cookie[0] != '\0')
        layout_login(desk, answer, 403, "", "You are not logged in any more.");
    else
        layout_redirect(answer, "/login", NULL);
}

static void answer_known(struct visit *visit)
{
    const struct request *request = visit->request;
    const int posts = strcmp(request->method, "POST") == 0;

    visit->account = visit->session->account;
    /* A search is sent by POST so that no number stands in an address; it is no act. */
    if (posts && strcmp(request->path, "/search") != 0)
        shards_look_anew(visit->session->shards);
    if (!visit_is_of_fleet(visit)) {
        const tl_status status = visit_go_to(visit, 0);

        if (status == TL_ACCESS_DENIED || status == TL_REFUSED) {
            session_end(visit->desk->sessions, visit->session);
            layout_login(visit->desk, visit->answer, 403, "",
                         "This account may not come in any more. Nothing was done.");
            return;
        }
    }
    if (posts && strcmp(request->path, "/login") == 0) {
        log_in(visit->desk, request, visit->answer);
        return;
    }
    if (posts && !secret_equal(visit->session->token, form_get(&request->body, "token"))) {
        layout_sentence(visit, 403, "Not from this page",
                        "This form was not sent by a page of yours. Nothing was done.");
        return;
    }
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        if (strcmp(routes[i].path, request->path) == 0) {
            void (*run)(struct visit *) = posts ? routes[i].post : routes[i].get;

            if (run != NULL)
                run(visit);
            else
                layout_sentence(visit, 405, "Not this way",
                                "This address is not used that way. Nothing was done.");
            return;
        }
    if (strcmp(request->path, "/login") == 0)
        layout_redirect(visit->answer, "/", NULL);
    else
        layout_sentence(visit, 404, "No such page", "There is no such page.");
}

void desk_answer(struct desk *desk, const struct request *request, struct answer *answer)
{
    struct visit visit = {.desk = desk, .request = request, .answer = answer};

    if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0 &&
        strcmp(request->method, "POST") != 0) {
        layout_stranger(answer, 405, "Not this way", "The desk knows GET and POST.");
        return;
    }
    if (answer_file(request, answer))
        return;
    if (request->cookie[0] != '\0')
        visit.session = sessions_get(desk->sessions, request->cookie, !request->is_refresh,
                                     strcmp(request->path, "/wall") == 0);
    /* Of a stranger's form nothing is read, but of the one that lets people in. */
    if ((visit.session == NULL && strcmp(request->path, "/login") != 0) ||
        check_body(desk, request, answer)) {
        if (visit.session != NULL)
            answer_known(&visit);
        else
            answer_stranger(desk, request, answer);
    }
    if (visit.session != NULL)
        session_put(desk->sessions, visit.session);
}
