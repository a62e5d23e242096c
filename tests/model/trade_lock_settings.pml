/* What a run of trade_lock.pml can be told by -D macros. */

/* The channel's contract. */
#ifndef IDEM            /* 1: one payment for one key, however often it is sent */
#define IDEM 0
#endif
#ifndef REPLAY          /* 1: the first answer is bound to the key, a decline too */
#define REPLAY 1
#endif
#ifndef QUERY           /* 1: can be asked by key */
#define QUERY 1
#endif
#ifndef NFFINAL         /* 1: "not found" after the grace is true */
#define NFFINAL 1
#endif
#ifndef CANCEL          /* 0: none; 1: not final; 2: a cancelled key is never paid */
#define CANCEL 0
#endif
#ifndef EXPIRY          /* 1: refuses what was sent after the sender's send_until */
#define EXPIRY 0
#endif
#ifndef PLAIN           /* 1: plain locks; the compensating job asks, then pays itself;
                           2: it first waits as a workflow does, and arms */
#define PLAIN 0
#endif
#ifndef SLOW            /* 1: a plain send takes its time, as every other does */
#define SLOW 0
#endif
#ifndef GAP             /* 1: the pause between tl_may_send() and the socket may outlast
                           max_hold; 0: it may outlast the session only */
#define GAP 0
#endif
#ifndef WINDOW          /* 1: forgets its keys, after deadline, max_hold and latency;
                           2: too early, after deadline and latency */
#define WINDOW 0
#endif
#ifndef WEBHOOKS        /* 1: the channel tells of payments unasked, sooner or later */
#define WEBHOOKS 0
#endif

#ifdef RESENT_ANYWAY    /* sent again at once, whatever the channel does with a key */
#define RESENT 1
#else
#define RESENT IDEM
#endif

/* Budgets: how many accidents one run may have. */
#ifndef ACCIDENTS       /* deaths, session time-outs of the living, lost answers */
#define ACCIDENTS 2
#endif
#ifndef DECLINES
#define DECLINES 1
#endif
#ifndef ATTEMPTS        /* after so many compensating attempts a person is called */
#define ATTEMPTS 3
#endif
#ifndef RECLAIMS        /* 1: a failure may be tried anew */
#define RECLAIMS 1
#endif
#ifndef SERVICES
#define SERVICES 2
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
