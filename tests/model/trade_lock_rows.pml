/* ---- The database: every write to the two rows goes through task_run. ---- */

/* Each step that writes the sync row brings a fresh token and a new fence. */
inline fresh_numbers()
{
    RULE(st != Y);                              /* nothing after Y */
#ifdef NUMBERS
    fence++;
#endif
    hf[0] = 0; hf[1] = 0; hf[2] = 0; hf[3] = 0;
    ht[0] = 0; ht[1] = 0; ht[2] = 0; ht[3] = 0;
    cur[0] = 0; cur[1] = 0; cur[2] = 0; cur[3] = 0
}

inline committed(i)
{
    cur[i] = 1; seen[i] = 1; r = OK
}

inline grant(i)
{
    fresh_numbers();
    su = (su & BIT(i) -> (su & ~BIT(i)) | BIT(NA) : su);
    holder = i;
    over[i] = 0;
    committed(i)
}

inline first_send(i)
{
    st = P; sends = 1; nf = 0; ref = 0; proof = 0;
    grant(i);
    su = BIT(i)
}

/* The holder goes, the retry row waits: tl_lock_put_back, janitor_round. */
inline open_lane()
{
    fresh_numbers();
    holder = NOBODY;
    if
    :: rs == NONE || rs == CLOSED || rep != ep -> att = 0; rs = WAIT
    :: else -> rs = (rs == WORK -> WAIT : rs)
    fi;
    rep = ep
}

inline close_lane()
{
    fresh_numbers();
    holder = NOBODY; nf = 0; ref = 0; att = 0;
    rs = (rs != NONE -> CLOSED : NONE)
}

/* One statement with its commit.  The verdict is left in r. */
inline execute(i, what, how)
{
    r = LOST;
    if
    :: what == ASK ->                           /* tl_lock_ask */
        if
        :: st == NONE -> ep = 1; first_send(i)
        :: else -> r = REFUSED
        fi
    :: what == RECLAIM ->                       /* tl_lock_ask with TL_ASK_RECLAIM */
        if
        :: st == F && ep == 1 && !conflict -> ep = 2; first_send(i)
        :: else -> r = REFUSED
        fi
    :: what == CLAIM ->                         /* tl_claim_due */
        r = REFUSED;
        if
        :: st == P && !LIVE && !BLOCKED ->
            if
            :: holder != NOBODY || rs != WAIT || rep != ep -> open_lane()
            :: else
            fi;
            if
#ifndef NO_CLAIM_PARKS
            :: att >= ATTEMPTS -> rs = PARKED   /* the last attempt never ended */
#endif
            :: else ->
                att = (att < ATTEMPTS -> att + 1 : att);
                rs = WORK;
                grant(i)
            fi
        :: else
        fi
    :: what == ARM ->                           /* tl_lock_arm */
        if
        :: CAS(i) && MAY_NOT_ARM -> r = REFUSED
        :: CAS(i) && !MAY_NOT_ARM ->
            fresh_numbers();
            sends++;
            nf = 0;
            over[i] = 0;                        /* max_hold starts anew */
            su = su | BIT(i);
            committed(i)
        :: else
        fi
    :: what == FINISH && !CAS(i)
    :: what == FINISH && CAS(i) ->              /* tl_lock_finish */
        if
        :: how == SUCCESS ->
            MONEY(paid[ep] == 1);
            close_lane();
            st = Y;
            committed(i)
        :: how >= DECLINED && (evidence_paid & BIT(ep)) ->
            r = EVIDENCE                        /* rolled back, then ended as UNKNOWN */
        :: how >= DECLINED && !(evidence_paid & BIT(ep)) ->
            MONEY(TOTAL == 0 || conflict);
            close_lane();
            st = F;
            proof = how;
            committed(i)
        :: else ->
            open_lane();
            if
            :: how == NOT_SENT && armed[i] ->
                sends--;
#ifdef OTHERS_FORGOTTEN /* send_until goes, not what this send added to it */
                su = 0
#else
                su = su & ~BIT(i)
#endif
            :: how == NOT_FOUND && nf == 0 -> nf = 1
            :: how == PENDING -> ref = 1
            :: else
            fi;
            rs = (how == PARK || att >= ATTEMPTS -> PARKED : rs);
            committed(i)
        fi
    fi
}

/* File what is known of epoch k, with the sync row locked: tl_evidence_add. */
inline file_evidence(k, success)
{
    if
    :: success ->
        evidence_paid = evidence_paid | BIT(k);
        conflict = (st == F || k != ep -> 1 : conflict)
    :: else -> evidence_declined = evidence_declined | BIT(k)
    fi
}
