#!/usr/bin/env bash
# Sourced: a house of a server, a channel and a worker in a folder, which becomes the working
# directory; how the commands of tools/RUNBOOK.md are run there as they stand; and what is asked
# after each incident: do the books agree, was nobody paid twice, does no alert fire.
# shellcheck disable=SC2119,SC2120 # arguments that are handed on may be none
set -euo pipefail

dir=$(mktemp -d "$TL_BUILD_DIR/runbook.XXXXXX")
PATH=$TL_BUILD_DIR/bin:$PATH
pids=()
payments=0
port=0

house_finish() {
    local code=$? pid
    trap - EXIT
    for pid in "${pids[@]}"; do
        # A process that was stopped takes no other signal.
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    "$TL_SOURCE_DIR/tools/dev/mariadb" remove "$dir/server" >/dev/null 2>&1 || true
    if [ $code -ne 0 ]; then
        tail -n 30 "$dir"/*.log || true
    fi
    rm -rf "$dir"
    exit $code
}
trap house_finish EXIT

complain() {
    printf 'FAILED: %s\n' "$*"
    exit 1
}

# eventually SECONDS COMMAND...: waits until it succeeds.
eventually() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || complain "not in time: $*"
        sleep 0.1
    done
}

sql() {
    mariadb --defaults-file=admin.cnf --batch --skip-column-names tradelock "$@"
}

# ---------------------------------------------------------------------------- the house --

# option_file NAME ACCOUNT [SETTING...]: of an account that tools/dev/mariadb made.
option_file() {
    local name=$1 account=$2
    shift 2
    (
        umask 077
        {
            cat "server/$account.cnf"
            grep -vE "^($(printf '%s|' "${settings[@]%% *}")-) *=" \
                "$TL_SOURCE_DIR/config/quickstart.cnf"
            printf '%s\n' "${settings[@]}" "$@"
        } >"$name.cnf"
    )
}

# person NAME: an operator's own account.
person() {
    local password line
    password=$(od -An -tx1 -N9 /dev/urandom | tr -d ' \n')
    sql <<SQL
CREATE USER $1@localhost IDENTIFIED BY '$password';
GRANT tradelock_operator TO $1@localhost;
SET DEFAULT ROLE tradelock_operator FOR $1@localhost;
SQL
    option_file "$1-as-operator" operator
    (
        umask 077
        while IFS= read -r line; do
            case $line in
            user=*) line=user=$1 ;;
            password=*) line=password=$password ;;
            esac
            printf '%s\n' "$line"
        done <"$1-as-operator.cnf" >"$1.cnf"
    )
    rm "$1-as-operator.cnf"
}

# house_server [OPTION...]: a server with accounts that nothing was done on.
house_server() {
    cd "$dir"
    # What the page names by its place in the source tree.
    ln -s "$TL_SOURCE_DIR/tools" tools
    tools/dev/mariadb start server "$@" >mariadb.log
    option_file admin admin
    option_file app app 'metrics_listen = 127.0.0.1:0'
    option_file reader reader
    (umask 077 && sed 's/^\[client\]$/&\ndatabase=tradelock/' admin.cnf >books.cnf)
    export TRADELOCK_CONFIG=ann.cnf
}

house_people() {
    tools/dev/mariadb grants server tradelock >>mariadb.log
    cat "$TL_SOURCE_DIR"/workflows/withdraw/{schema,grants}.sql | sql
    person ann
    person bob
}

# The house's own account, out of which it pays batches.
house_money() {
    sql -e "INSERT INTO account (cust_no, currency, balance_minor) VALUES ('HOUSE', 'EUR', 100000000)"
}

# house_open [SETTING...]: settings that replace those of config/quickstart.cnf.
house_open() {
    settings=('deadline_ms = 10m' "$@")
    house_server
    tradelock migrate --config admin.cnf >>mariadb.log
    house_people
    channel_start
    worker_start
    eventually 60 grep -q '^metrics at' worker.out
    scrape before.txt
}

channel_start() {
    rm -f port
    tradelock-simulator --ledger channel.ledger --port-file port --listen "127.0.0.1:$port" \
        >>simulator.log 2>&1 &
    channel=$!
    pids+=("$channel")
    eventually 60 test -s port
    [ -n "${CHANNEL:-}" ] ||
        printf '[service-withdraw]\nchannel_url = http://127.0.0.1:%s\nchannel = idempotent\n' "$(cat port)" >>app.cnf
    port=$(cat port)
    export CHANNEL=http://127.0.0.1:$port PLUGIN=$TL_BUILD_DIR/lib/withdraw.so
}
channel_stop() {
    kill "$channel"
    wait "$channel" || complain "the channel ended with $?"
}
rule() {
    curl -sS --fail -d "$1" "$CHANNEL/v1/faults" >/dev/null
}
no_rules() {
    curl -sS --fail -X DELETE "$CHANNEL/v1/faults" >/dev/null
}

worker_start() {
    tradelock-worker --config app.cnf --plugin "$PLUGIN" --verbose >>worker.out 2>>worker.log &
    export WORKER=$!
    pids+=("$WORKER")
}

# service SERIAL...: the service with a withdrawal of 100.00 EUR each, in the background.
service() {
    local serial
    payments=$((payments + 1))
    {
        printf 'serial_no,cust_no,op,amount_minor,currency,payee\n'
        for serial in "$@"; do
            printf '%s,C-%s,WITHDRAW,10000,EUR,Zoe\n' "$serial" "$serial"
        done
    } >"payments-$payments.csv"
    tools/dev/accounts books.cnf "payments-$payments.csv" 1000000
    tradelock-withdraw --config app.cnf --verbose --out "answers-$payments.csv" \
        "payments-$payments.csv" >>service.out 2>>service.log &
    service=$!
    pids+=("$service")
}
pay() {
    service "$@"
    service_end
}
service_end() {
    local code=0
    wait "$service" || code=$?
    # 6: some are in process still.
    [ $code -eq 0 ] || [ $code -eq 6 ] || complain "the service ended with $code"
}

# --------------------------------------------------------------------------- the alerts --

# scrape NAME: what Prometheus would be told now, by the exporter and by each worker that lives.
scrape() {
    local url
    tradelock exporter --once --config reader.cnf >"$1" 2>/dev/null
    for url in $(sed -n 's/^metrics at //p' worker.out | tail -n 1); do
        curl -sS --fail "$url" >>"$1" 2>/dev/null || true
    done
}

# firing BEFORE NOW: the alerts that fire if half an hour goes on like this.  Ages grow, counters
# rise by what they rose between the two scrapes, and everything else stays.
firing() {
    local names
    names=$(grep -oE 'tradelock_[a-z_]+' "$TL_SOURCE_DIR/config/prometheus-alerts.yml" | sort -u |
        tr '\n' ' ')
    {
        printf 'rule_files: [alerts.yml]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n'
        printf '    input_series:\n'
        awk -v names=" $names" -v quote="'" '
            /^#/ || index($0, " ") == 0 { next }
            { name = series = $0; sub(/[{ ].*/, "", name); sub(/ [^ ]*$/, "", series) }
            index(names, " " name " ") == 0 { next }
            FNR == NR { before[series] = $NF; next }
            name ~ /_total$/ { from = 0; step = $NF - before[series] }
            name !~ /_total$/ { from = $NF; step = name ~ /_seconds$/ && $NF > 0 ? 60 : 0 }
            { printf "      - series: %s%s%s\n        values: %s+%sx40\n", quote, series, quote,
                  from, step }' "$1" "$2"
        printf '    alert_rule_test:\n'
        sed -n 's/.*- alert: \(.*\)/      - {alertname: \1, eval_time: 35m, exp_alerts: []}/p' \
            "$TL_SOURCE_DIR/config/prometheus-alerts.yml"
    } >alerts_test.yml
    cp "$TL_SOURCE_DIR/config/prometheus-alerts.yml" alerts.yml
    "$TL_SOURCE_DIR/tools/dev/uninstalled" promtool test rules alerts_test.yml \
        >alerts.out 2>&1 ||
        grep -q 'got:' alerts.out || {
        cat alerts.out
        complain 'promtool'
    }
    sed -n 's/.*alertname: *\([A-Za-z]*\),.*/\1/p' alerts.out
}

# ----------------------------------------------------------------------------- the page --

# As an extended regular expression: numbers are any numbers, and "..." is anything.
pattern_of() {
    # shellcheck disable=SC2016 # these are dollars
    printf '%s' "$1" | sed -E 's/[][\\.*^$(){}?+|]/\\&/g; s/(\\\.){3}/.*/g
        s/[0-9]+(\\\.[0-9]+)?/[0-9.]+/g; s/ +/ +/g'
}

# fires_as_said ALERT: it fires, or ("") none does.
fires_as_said() {
    scrape now.txt
    firing before.txt now.txt >fires
    if [ -n "$1" ]; then grep -qx "$1" fires; else [ ! -s fires ]; fi
}

# noticed INCIDENT LOG-FILE: what the page's table of incidents says of it is true now.
noticed() {
    local row log alert want code=0
    row=$(grep -F "| [$1](" tools/RUNBOOK.md) || complain "the page has no incident $1"
    alert=$(printf '%s' "$row" | cut -d'|' -f3 | grep -o 'Tradelock[A-Za-z]*' || true)
    # shellcheck disable=SC2016 # and these are backticks
    log=$(printf '%s' "$row" | cut -d'|' -f4 | sed -n 's/[^`]*`\([^`]*\)`.*/\1/p')
    want=$(printf '%s' "$row" | cut -d'|' -f5 | sed 's/^ *\([0-9]*\).*/\1/')
    if [ -n "$log" ]; then
        eventually 30 grep -E "$(pattern_of "$log")" "$2"
        printf '%s: %s\n' "$1" "$(grep -E "$(pattern_of "$log")" "$2" | tail -n 1)"
    fi
    tradelock status >status.out 2>&1 || code=$?
    [ "$code" = "$want" ] || {
        cat status.out
        complain "$1: tradelock status ends with $code, not $want"
    }
    # What is due at the very moment of a scrape may be claimed by the next one.
    eventually 120 fires_as_said "$alert"
    cat fires
}

# run_command COMMAND CODE LINE...: as it stands; it ends with the code, and says the lines.
run_command() {
    local command=$1 want=$2 code=0 line last=${!:-}
    shift 2
    printf '%s %s\n' '$' "$command"
    # In this shell, which is then like a person's: what it sets is there for the next command.
    set +eu +o pipefail
    eval "$command" >"$dir/printed" 2>&1 </dev/null
    code=$?
    set -eu -o pipefail
    cat "$dir/printed"
    [ "${!:-}" = "$last" ] || pids+=("$!")
    [ $code -eq "$want" ] || [ "$want" = any ] || complain "it ended with $code, not $want"
    for line in "$@"; do
        grep -qE -- "$(pattern_of "$line")" "$dir/printed" || complain "it did not say: $line"
    done
}

# follow FILE HEADING [NUMBER [CODE]]: runs the console blocks under a heading of a page, or one.
# A command begins with "$ " and goes on with "> "; "# N" behind it is its exit code, else CODE (0;
# any); what stands below it is among what it prints.
follow() {
    local line command='' code=${4:-0} commands=0
    local -a said=() lines
    awk -v heading="$2" -v only="${3:-0}" '
        /^#+ / && !on {
            depth = index($0, " ")
            if (here && depth <= level) here = 0
            if (substr($0, depth + 1) == heading) { here = 1; level = depth }
        }
        here && /^```console$/ { on = 1; number++; next }
        /^```$/ { on = 0 }
        on && (only == 0 || only == number)' "$1" >"$dir/block"
    mapfile -t lines <"$dir/block"
    for line in "${lines[@]}" '$ '; do
        case $line in
        '$ '*)
            if [ -n "$command" ]; then
                run_command "$command" "$code" "${said[@]}"
                commands=$((commands + 1))
            fi
            command=${line#\$ }
            code=${4:-0}
            said=()
            if [[ $command =~ ^(.*[^ ])\ +\#\ ([0-9]+)(:.*)?$ ]]; then
                command=${BASH_REMATCH[1]}
                code=${BASH_REMATCH[2]}
            fi
            ;;
        '> '*) command+=$'\n'${line#> } ;;
        *) said+=("$line") ;;
        esac
    done
    [ $commands -gt 0 ] || complain "$1 has no commands: $2 ${3:-}"
}

page() {
    follow tools/RUNBOOK.md "$@"
}

# ---------------------------------------------------------------------------- the books --

statement() {
    tradelock-simulator --export-csv channel.ledger >statement.csv
}

# house_close: all is well again, by whoever can tell.
house_close() {
    eventually 60 sh -c 'tradelock status && tradelock status | grep "nothing waits"'
    scrape before.txt
    # What is due at the very moment of a scrape may be claimed by the next one.
    eventually 120 fires_as_said ''
    statement
    head -n 1 answers-1.csv >answers.csv
    tail -q -n +2 answers-[0-9]*.csv >>answers.csv
    "$TL_SOURCE_DIR/tools/dev/books" books.cnf answers.csv statement.csv >books ||
        { cat books; complain 'the books do not agree'; }
    cat books
    grep -q '^  paid twice: 0$' books || complain 'paid twice'
    tradelock audit --statement statement.csv || complain 'the audit'
}
