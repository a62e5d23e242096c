#!/usr/bin/env bash
# Sourced, after tests/runbook/house.sh: two servers with semi-synchronous replication, accounts and
# settings that name both, and the tables of the sample.
# shellcheck disable=SC2154 # dir is the house's
set -euo pipefail

free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)) && (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
        :
    done
    printf '%d\n' "$port"
}

# ---------------------------------------------------------------------- the two servers --

cd "$dir"
ln -s "$TL_SOURCE_DIR/tools" tools
remove_both() {
    local code=$?
    set +e
    mariadb --defaults-file=second.cnf -e 'SHOW SLAVE STATUS\G' | grep Error >slave.log
    tools/dev/mariadb remove "$dir/second-server" >/dev/null 2>&1 || true
    (exit $code)
    house_finish
}
trap remove_both EXIT
FIRST_PORT=$(free_port)
SECOND=127.0.0.1 SECOND_PORT=$(free_port) REPLICA_PASSWORD=secret-replica
export SECOND SECOND_PORT REPLICA_PASSWORD
both=(--log-bin=binlog --sync-binlog=1 --log-slave-updates=1 --gtid-strict-mode=1 --skip-networking=0
    --bind-address=127.0.0.1 --rpl-semi-sync-master-timeout=31536000000
    --rpl-semi-sync-master-wait-point=AFTER_SYNC --slave-parallel-threads=4
    --slave-parallel-mode=conservative)
tools/dev/mariadb start server "${both[@]}" --server-id=1 "--port=$FIRST_PORT" >mariadb.log
tools/dev/mariadb start second-server "${both[@]}" --server-id=2 "--port=$SECOND_PORT" \
    --rpl-semi-sync-slave-enabled=1 >>mariadb.log
cp server/admin.cnf first.cnf
cp second-server/admin.cnf second.cnf
settings=('deadline_ms = 10m' 'session_ms = 10s' 'site = sample')
option_file admin admin
tradelock migrate --grants --config admin.cnf >>mariadb.log
{
    printf "CREATE USER replica@127.0.0.1 IDENTIFIED BY '%s';\n" "$REPLICA_PASSWORD"
    printf 'GRANT REPLICATION SLAVE ON *.* TO replica@127.0.0.1;\n'
    for who in tradelock_app:application ann:operator; do
        name=${who%:*}
        printf "CREATE USER %s@127.0.0.1 IDENTIFIED BY 'secret-%s';\n" "$name" "$name"
        printf 'GRANT tradelock_%s TO %s@127.0.0.1;\n' "${who#*:}" "$name"
        printf 'SET DEFAULT ROLE tradelock_%s FOR %s@127.0.0.1;\n' "${who#*:}" "$name"
    done
    sed 's/localhost/127.0.0.1/g' "$TL_SOURCE_DIR"/workflows/withdraw/{schema,grants}.sql
} | sql
house_money
mariadb --defaults-file=second.cnf -e "RESET MASTER; CHANGE MASTER TO MASTER_HOST = '127.0.0.1',
    MASTER_PORT = $FIRST_PORT, MASTER_USER = 'replica',
    MASTER_PASSWORD = '$REPLICA_PASSWORD', MASTER_USE_GTID = slave_pos; START SLAVE;
    SET GLOBAL read_only = 1"
sql -e 'SET GLOBAL rpl_semi_sync_master_enabled = 1'
replicas() {
    [ "$(sql -e "SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'" | cut -f2)" = 1 ]
}
eventually 60 replicas
has_all() {
    [ "$(mariadb --defaults-file=second.cnf -BNe 'SELECT @@gtid_slave_pos')" = \
        "$(sql -e 'SELECT @@gtid_binlog_pos')" ]
}
eventually 60 has_all

# account NAME [HOST]: an option file that names both hosts, or one.
account() {
    (
        umask 077
        {
            printf '[tradelock-client]\nuser = %s\npassword = secret-%s\n' "$1" "$1"
            printf 'database = tradelock\nhost = %s\n' \
                "${2:-127.0.0.1:$FIRST_PORT, 127.0.0.1:$SECOND_PORT}"
            grep -vE '^(deadline_ms|session_ms|site) *=' "$TL_SOURCE_DIR/config/quickstart.cnf"
            printf '%s\n' "${settings[@]}"
        } >"$1.cnf"
    )
}
account ann "127.0.0.1:$SECOND_PORT"
mv ann.cnf at-second.cnf
account ann
account tradelock_app
mv tradelock_app.cnf app.cnf
export TRADELOCK_CONFIG=ann.cnf

