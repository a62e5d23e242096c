/*
 * admin.h - for operators and administrators: everything that libtradelock-admin offers.
 *
 * A service needs none of it, and its account has no right to most of it.  The headers below say
 * for each call which account it needs: an administrator's, an operator's or a reader's
 * (sql/grants.sql).  A client for them is opened with TL_CLIENT_NO_SESSION, and for tl_migrate()
 * and tl_doctor() with TL_CLIENT_NO_SCHEMA.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.  What a callback of a list is
 * given lives until it returns.
 */
#ifndef TRADELOCK_ADMIN_H
#define TRADELOCK_ADMIN_H

#include <tradelock/admin/acts.h>
#include <tradelock/admin/audit.h>
#include <tradelock/admin/channels.h>
#include <tradelock/admin/decisions.h>
#include <tradelock/admin/explain.h>
#include <tradelock/admin/fleet.h>
#include <tradelock/admin/locks.h>
#include <tradelock/admin/metrics.h>
#include <tradelock/admin/now.h>
#include <tradelock/admin/overview.h>
#include <tradelock/admin/report.h>
#include <tradelock/admin/restore.h>
#include <tradelock/admin/server.h>
#include <tradelock/admin/shards.h>
#include <tradelock/admin/trades.h>

#endif
