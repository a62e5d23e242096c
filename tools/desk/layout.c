/* What every page has around it, and pages of one sentence. */
#include "desk.h"

#include "options.h"

#include <stdio.h>
#include <string.h>

/* refresh_s 0: the page is not read again by itself, or by its script. */
static void head(struct page *page, const char *title, unsigned refresh_s)
{
    page_put(page, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<meta name=\"color-scheme\" content=\"light dark\">\n");
    page_format(page, "<title>%s – tradelock</title>\n", title);
    page_put(page, "<link rel=\"stylesheet\" href=\"/desk.css\">\n"
                   "<link rel=\"icon\" href=\"/icon.svg\" type=\"image/svg+xml\">\n");
    if (refresh_s > 0)
        page_format(page, "<meta http-equiv=\"refresh\" content=\"%u\">\n</head>\n", refresh_s);
    else
        page_put(page, "<script src=\"/desk.js\" defer></script>\n</head>\n");
}

void layout_token(struct visit *visit)
{
    page_format(&visit->answer->page, "<input type=\"hidden\" name=\"token\" value=\"%s\">",
                visit->session->token);
}

static void link_to(struct page *page, const char *path, const char *name, int is_here)
{
    page_format(page, "<a href=\"%s\"", path);
    page_put(page, is_here ? " aria-current=\"page\">" : ">");
    page_format(page, "%s</a>\n", name);
}

static void bar(struct visit *visit, enum place place)
{
    static const char *const pages[PLACE_NONE][2] = {[PLACE_NOW] = {"/", "Now"},
                                                     [PLACE_INBOX] = {"/inbox", "Inbox"},
                                                     [PLACE_TRADES] = {"/trades", "Trades"},
                                                     [PLACE_CHANNELS] = {"/channels", "Channels"},
                                                     [PLACE_REPORTS] = {"/reports", "Reports"},
                                                     [PLACE_AUDIT] = {"/audit", "Audit"},
                                                     [PLACE_ACTS] = {"/acts", "Acts"},
                                                     [PLACE_DOCTOR] = {"/doctor", "Doctor"}};
    struct page *page = &visit->answer->page;
    const tl_account *account = &visit->session->account;

    page_put(page, "<a class=\"skip\" href=\"#main\">Skip to the page</a>\n<header class=\"bar\">\n"
                   "<a class=\"brand\" href=\"/\"><span class=\"mark\" aria-hidden=\"true\"></span>"
                   "tradelock</a>\n");
    page_put(page, "<nav aria-label=\"Pages\">\n");
    for (size_t i = 0; i < PLACE_NONE; i++)
        link_to(page, pages[i][0], pages[i][1], i == (size_t)place);
    page_put(page, "</nav>\n<form class=\"find\" method=\"post\" action=\"/search\" "
                   "role=\"search\">");
    layout_token(visit);
    page_format(page,
                "<input id=\"find\" type=\"search\" name=\"find\" value=\"%s\" "
                "aria-label=\"Find a trade\" placeholder=\"Serial, customer, reference, "
                "1,250.00 EUR ...\" autocomplete=\"off\" autocapitalize=\"none\" "
                "spellcheck=\"false\"><button class=\"button\">Find</button></form>\n"
                "<div class=\"who\">",
                visit->find != NULL ? visit->find : "");
    page_format(page, "<span class=\"name\" title=\"%s on %s\">%s</span>", account->name,
                account->database, visit->session->user);
    page_put(page, account->may_decide ? "<span class=\"role\">operator</span>"
                                       : "<span class=\"role\">reader</span>");
    page_put(page, "<form method=\"post\" action=\"/logout\">");
    layout_token(visit);
    page_put(page, "<button class=\"plain\">Log out</button></form></div>\n</header>\n");
}

void layout_begin(struct visit *visit, unsigned status, const char *title, enum place place,
                  unsigned refresh_s)
{
    struct page *page = &visit->answer->page;
    char notice[NOTICE_TEXT];

    visit->answer->status = status;
    head(page, title, 0);
    page_put(page, "<body>\n");
    bar(visit, place);
    if (refresh_s > 0)
        page_format(page, "<main id=\"main\" data-refresh=\"%u\">\n", refresh_s);
    else
        page_put(page, "<main id=\"main\">\n");
    if (visit->request->is_refresh)
        return;
    session_told(visit->desk->sessions, visit->session, notice);
    if (notice[0] != '\0')
        page_format(page, "<p class=\"notice good\" role=\"status\">%s</p>\n", notice);
}

void layout_wall(struct visit *visit, const char *title, unsigned refresh_s)
{
    struct page *page = &visit->answer->page;

    visit->answer->status = 200;
    head(page, title, refresh_s);
    page_put(page, "<body class=\"wall\">\n<main id=\"main\">\n");
}

void layout_end(struct visit *visit)
{
    page_put(&visit->answer->page, "</main>\n</body>\n</html>\n");
}

/* A card with one sentence, and the page's end. */
static void lone(struct page *page, const char *title, const char *sentence, const char *back)
{
    page_format(page,
                "<section class=\"card lone\"><h1>%s</h1><p>%s</p>"
                "<p><a class=\"button\" href=\"/\">Back to %s</a></p></section>\n"
                "</main>\n</body>\n</html>\n",
                title, sentence, back);
}

void layout_sentence(struct visit *visit, unsigned status, const char *title, const char *sentence)
{
    layout_begin(visit, status, title, PLACE_NONE, 0);
    lone(&visit->answer->page, title, sentence, "Now");
}

void layout_no_form(struct visit *visit, const char *sentence)
{
    char said[256];

    snprintf(said, sizeof said, "%s Nothing was done.", sentence);
    layout_sentence(visit, 400, "Not a form of this desk", said);
}

void layout_not_now(struct visit *visit, tl_status status)
{
    char said[1024];

    snprintf(said, sizeof said, "Nothing was done: %.900s", said_by(status));
    layout_sentence(visit, http_of(status), "Not now", said);
}

void layout_stranger(struct answer *answer, unsigned status, const char *title,
                     const char *sentence)
{
    answer->status = status;
    head(&answer->page, title, 0);
    page_put(&answer->page, "<body class=\"door\">\n<main id=\"main\">");
    lone(&answer->page, title, sentence, "the desk");
}

void layout_login(struct desk *desk, struct answer *answer, unsigned status, const char *user,
                  const char *sentence)
{
    struct page *page = &answer->page;
    char token[SECRET_TEXT];

    answer->status = status;
    secret_word(token);
    snprintf(answer->set_login_cookie, sizeof answer->set_login_cookie,
             "tl_desk_login=%s; Path=/login; HttpOnly; SameSite=Strict%s", token,
             strcmp(desk->origin_scheme, "https") == 0 ? "; Secure" : "");
    head(page, "Log in", 0);
    page_put(page, "<body class=\"door\">\n<main id=\"main\">\n<section class=\"card login\">\n"
                   "<p class=\"brand\"><span class=\"mark\" aria-hidden=\"true\"></span>tradelock"
                   "</p>\n<h1>Operators’ desk</h1>\n");
    if (sentence != NULL)
        page_format(page, "<p class=\"notice bad\" role=\"alert\">%s</p>\n", sentence);
    page_put(page, "<form method=\"post\" action=\"/login\">\n");
    page_format(page, "<input type=\"hidden\" name=\"login_token\" value=\"%s\">\n", token);
    page_format(page,
                "<label for=\"user\">Database account</label>\n<input id=\"user\" name=\"user\" "
                "value=\"%s\" autocomplete=\"username\" autocapitalize=\"none\" "
                "spellcheck=\"false\" maxlength=\"128\" required autofocus>\n",
                user);
    page_put(page, "<label for=\"password\">Password</label>\n<input id=\"password\" "
                   "name=\"password\" type=\"password\" autocomplete=\"current-password\" "
                   "required>\n<button class=\"button main\">Log in</button>\n</form>\n"
                   "<p class=\"quiet\">Your own MariaDB account. What you may do here is what it "
                   "may do.</p>\n</section>\n</main>\n</body>\n</html>\n");
}

void layout_redirect(struct answer *answer, const char *path, const char *ref)
{
    answer->status = 303;
    snprintf(answer->location, sizeof answer->location, "%s%s%s", path, ref != NULL ? "?r=" : "",
             ref != NULL ? ref : "");
    page_put(&answer->page, "\n");
}

const char *said_by(tl_status status)
{
    const char *said = tl_error_message();

    return said[0] != '\0' ? said : tl_status_text(status);
}

unsigned http_of(tl_status status)
{
    switch (status) {
    case TL_OK:
        return 200;
    case TL_INVALID:
        return 400;
    case TL_NOT_FOUND:
        return 404;
    case TL_ACCESS_DENIED:
        return 403;
    case TL_UNREACHABLE:
    case TL_OVERLOADED:
    case TL_UNKNOWN:
        return 503;
    default:
        return tl_status_class(status) == TL_CLASS_RETRY ? 503 : 409;
    }
}
