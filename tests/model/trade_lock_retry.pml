/* ---- The retry's order of decisions: resolver_decide. ---- */

inline resolver_decide(i)
{
    past_su[i] = SU_PASSED;
    past_grace[i] = (nf == 2);
    phase[i] = ENDING;
    if
    :: evidence_paid & BIT(ep) -> out[i] = SUCCESS
    :: else ->
        if
        :: (evidence_declined & BIT(ep)) && sends == 1 -> out[i] = DECLINED
        :: else ->
            if
            :: PLAIN == 1 -> phase[i] = QUERYING
            :: PLAIN != 1 && sends == 0 && !deadline -> phase[i] = ARMING
            :: PLAIN != 1 && sends == 0 && deadline -> out[i] = NEVER_LEFT
#ifdef NO_QUERY_FIRST
            :: PLAIN != 1 && sends > 0 && !deadline -> phase[i] = ARMING
            :: PLAIN != 1 && sends > 0 && deadline -> phase[i] = QUERYING
#else
            :: PLAIN != 1 && sends > 0 && QUERY -> phase[i] = QUERYING
            :: PLAIN != 1 && sends > 0 && !QUERY && IDEM && !deadline -> phase[i] = ARMING
            :: PLAIN != 1 && sends > 0 && !QUERY && !(IDEM && !deadline) -> out[i] = PARK
#endif
            fi
        fi
    fi
}

#ifdef NO_SEND_UNTIL
#define PAST_SU(i) 1
#else
#define PAST_SU(i) past_su[i]
#endif
#ifdef LATE_JUDGE       /* the grace is judged when the answer is weighed */
#define PAST_GRACE(i) (nf == 2)
#else
#define PAST_GRACE(i) past_grace[i]
#endif

/* Where a "not found" that counts would prove nothing, the same key goes out at once. */
#define AT_ONCE (RESENT && !PLAIN && !NFFINAL && CANCEL == 0 && !ref && !deadline)

/* What "not found" leads to. */
inline weigh_not_found(i)
{
    phase[i] = ENDING;
    if
    :: PLAIN == 1 -> phase[i] = CHECKING
    :: PLAIN != 1 && AT_ONCE -> phase[i] = ARMING
    :: PLAIN != 1 && !(AT_ONCE) && !PAST_SU(i) -> out[i] = UNKNOWN
    :: PLAIN != 1 && !(AT_ONCE) && PAST_SU(i) && !PAST_GRACE(i) -> out[i] = NOT_FOUND
    :: PLAIN != 1 && !(AT_ONCE) && PAST_SU(i) && PAST_GRACE(i) ->
        if
        :: ref -> out[i] = PARK
        :: !ref && NFFINAL && !PLAIN -> out[i] = NOT_FOUND_FINAL
        :: !ref && NFFINAL && PLAIN == 2 -> phase[i] = ARMING
        :: !ref && !NFFINAL && CANCEL > 0 -> phase[i] = CANCELLING
        :: !ref && !NFFINAL && CANCEL == 0 && IDEM && !deadline -> phase[i] = ARMING
        :: !ref && !NFFINAL && CANCEL == 0 && !(IDEM && !deadline) -> out[i] = PARK
        fi
    fi
}

/* What "failed" leads to.  Where a decline is not bound to the key, another send may
 * still be paid: then it counts only as "not found" does. */
inline weigh_failed(i)
{
    phase[i] = ENDING;
    if
#ifndef FAILED_AT_ONCE
    :: IDEM && !REPLAY && sends > 1 && !(tomb & BIT(hk[i])) && !PAST_SU(i) ->
        out[i] = UNKNOWN
    :: IDEM && !REPLAY && sends > 1 && !(tomb & BIT(hk[i])) && PAST_SU(i) &&
       !PAST_GRACE(i) -> out[i] = NOT_FOUND
#endif
    :: else -> out[i] = QUERY_FAILED
    fi
}

/* ---- The channel. ---- */

/* A message for key k arrives; the answer is left in a. */
inline arrive(k, a)
{
    if
    :: tomb & BIT(k) -> a = 3
    :: !(tomb & BIT(k)) && IDEM && !forgotten && paid[k] > 0 -> a = (REPLAY -> 2 : 3)
    :: !(tomb & BIT(k)) && IDEM && !forgotten && paid[k] == 0 &&
       REPLAY && (declined & BIT(k)) -> a = 3
    :: !(tomb & BIT(k)) && !(IDEM && !forgotten && paid[k] > 0) &&
       !(IDEM && !forgotten && REPLAY && (declined & BIT(k))) ->
        if
        :: MONEY(TOTAL == 0);                   /* never two payments for one trade */
           MONEY(conflict || (st == P && ep == k));     /* never F where money moved */
           paid[k]++;
           a = 2
        :: declines > 0 -> declines--; declined = declined | BIT(k); a = 3
        fi
    fi
}

inline leave_message(i)
{
    orphans[hk[i]] = (m[i] == 1 -> orphans[hk[i]] + 1 : orphans[hk[i]]);
    m[i] = 0
}
