#!/usr/bin/env bash
# A server, a channel and settings for the tests of plug-ins.  Sourced; sets dir, bin, plugins.
# shellcheck disable=SC2119,SC2120 # arguments that are handed on may be none
set -euo pipefail
cd "$TL_SOURCE_DIR"
bin=$TL_BUILD_DIR/bin
# shellcheck disable=SC2034 # for those who source this
plugins=$TL_BUILD_DIR/tests/plugin
dir=$(mktemp -d "$TL_BUILD_DIR/plugin.XXXXXX")
pids=()

finish() {
    local code=$? pid
    set +e
    trap - EXIT
    for pid in "${pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    tools/dev/mariadb remove "$dir/mariadb" >/dev/null 2>&1 || true
    if [ $code -ne 0 ]; then
        tail -n 15 "$dir"/*.log "$dir"/said* || true
    fi
    rm -rf "$dir"
    exit $code
}
trap finish EXIT

complain() {
    printf 'FAILED: %s\n' "$*"
    exit 1
}
# until_so WHAT COMMAND...: waits for it, a generous while.
until_so() {
    local what=$1 left=600
    shift
    until ("$@") >/dev/null 2>&1; do
        left=$((left - 1))
        [ $left -gt 0 ] || complain "$what"
        sleep 0.1
    done
}

is_apart() {
    [ "$(readlink "/proc/$machine/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}
# another_machine: a network of its own, as 10.98.0.2; this one, which is the test's own, is 10.98.0.1.
another_machine() {
    unshare --net sleep infinity &
    machine=$!
    pids+=("$machine")
    until_so 'there is another machine' is_apart
    ip link set lo up
    ip link add here type veth peer name there netns "$machine"
    ip address add 10.98.0.1/24 dev here
    ip link set here up
    there ip address add 10.98.0.2/24 dev there
    there ip link set there up
    there ip link set lo up
}
# there COMMAND...: on the other machine.
there() {
    nsenter --net="/proc/$machine/ns/net" "$@"
}

tools/dev/mariadb start "$dir/mariadb" >"$dir/mariadb.log"
# settings FILE LINE...: an option file with these lines at its end.
settings() {
    local file=$1
    shift
    (
        umask 077
        sed '/^database=/d; s/^\(\[[a-z-]*\]\)$/\1\ndatabase=tradelock/' "$dir/mariadb/admin.cnf"
        printf '%s\n' '[tradelock]' 'site = test' 'beat_ms = 100ms' 'session_ms = 600ms' \
            'max_hold_ms = 2s' 'execute_ms = 800ms' 'commit_ms = 1s' 'schedule = 50ms,100ms' \
            'attempts = 50' "deadline_ms = ${deadline:-20s}" 'grace_ms = 300ms' 'clock_margin_ms = 50ms' "$@"
    ) >"$file"
}
settings "$dir/plain.cnf"
"$bin/tradelock" migrate --config "$dir/plain.cnf" >>"$dir/mariadb.log"
sql() {
    mariadb --defaults-file="$dir/plain.cnf" --batch --skip-column-names tradelock "$@"
}
sql <workflows/withdraw/schema.sql
sql -e "INSERT INTO account (cust_no, currency, balance_minor) VALUES ('C1', 'EUR', 1000000000)"
