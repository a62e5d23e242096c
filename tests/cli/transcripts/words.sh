# shellcheck shell=sh
# Words of transcripts, beside `tradelock` itself.

# sql STATEMENT: its first row, by the administrator.
sql() {
    mariadb --defaults-file="$ADMIN" --skip-column-names --batch --execute="$1"
}

# fence SERIAL: that of the trade, as `show` has it.
fence() {
    sql "SELECT fence FROM trade_lock WHERE serial_no = '$1' AND lane = 'S'"
}

# rows [FILTER...]: what `ls` finds, as SERIAL/lane, in one line.
rows() {
    found=$(tradelock ls --lane all -o csv --columns serial,lane "$@") || return
    printf '%s\n' "$found" | sed -e 1d -e 's|,|/|' | paste -sd ' ' - | sed -n '/./p'
}

# only PATTERN COMMAND...: the lines of its output in which the pattern is; its exit code.
only() {
    pattern=$1
    shift
    text=$("$@")
    code=$?
    printf '%s\n' "$text" | grep -e "$pattern"
    return $code
}

# at NAME: the moment that `sql> INSERT INTO moment` kept under this name.
at() {
    sql "SELECT DATE_FORMAT(at, '%Y-%m-%dT%T.%f') FROM moment WHERE name = '$1'"
}

# pages LIMIT [FILTER...]: what `ls` gives page by page: "ROWS rows, DIFFERENT different, PAGES pages".
pages() {
    limit=$1
    shift
    next=''
    while page=$(tradelock ls --lane all --json --limit "$limit" "$@" ${next:+--after "$next"} 2>/dev/null); do
        printf '%s\n' "$page"
        case $page in *'"more": true'*) ;; *) break ;; esac
        next=${page##*'"next": "'} next=${next%'"'*}
    done | awk -F'"' '/"serial_no"/ { rows++; different += !seen[$4, $8, $12]++ } /"count"/ { pages++ }
        /"status": "Y"/ { ended = 1 } /"status": "P"/ && ended { late++ }
        END { print rows " rows, " different " different, " pages " pages" (late ? ", in process " late " late" : "") }'
}

# mine STATEMENT: how the server refuses it to the account that types it.
mine() {
    # shellcheck disable=SC2046
    mariadb $(my_print_defaults --defaults-file="$TRADELOCK_CONFIG" tradelock-client) --execute="$1" 2>&1 | grep '^ERROR'
}

# copy WORDS SERIAL: runs the command that `explain` prints below these words.
copy() {
    eval "$(tradelock explain "$2" C1 WITHDRAW | grep -A1 -e "$1" | grep -m1 '^ *tradelock ')"
}

# decide VERB SERIAL WHAT: proposes or confirms it about the trade as it is.
decide() {
    tradelock resolve "$1" "$2" C1 WITHDRAW --as "$3" --fence "$(fence "$2")" --reason "the bank's letter"
}

# settings MODE TEXT COMMAND...: the command with this file of settings.
settings() {
    TRADELOCK_CONFIG=$ADMIN.bad
    rm -f "$TRADELOCK_CONFIG"
    # shellcheck disable=SC2059
    printf "$2" >"$TRADELOCK_CONFIG"
    chmod "$1" "$TRADELOCK_CONFIG"
    shift 2
    "$@"
}

# alone [NAME=VALUE...] COMMAND...: without a file of settings; the environment says what it would.
alone() {
    env TRADELOCK_CONFIG= TRADELOCK_HOST="$(sed -n 's/^socket=//p' "$ADMIN" | head -n 1)" \
        TRADELOCK_USER="$(sed -n 's/^user=//p' "$ADMIN" | head -n 1)" \
        TRADELOCK_DATABASE="$(sed -n 's/^database=//p' "$ADMIN" | head -n 1)" "$@"
}

# told SERIAL OPTION...: evidence about the trade, of a web-hook.
told() {
    serial=$1
    shift
    tradelock evidence add "$serial" C1 WITHDRAW --source web-hook "$@"
}

# statement TEXT OPTION...: evidence of a file with these bytes.
statement() {
    # shellcheck disable=SC2059
    printf "$1" >"$ADMIN.csv"
    shift
    tradelock evidence add --statement "$ADMIN.csv" --source bank --reason daily "$@"
}

# cells LINE...: a statement of these lines below the usual heading, of one payment that is meant.
cells() {
    statement "serial_no,cust_no,op_code,channel_ref,amount_minor,currency$1" --yes 1
}

# filed SERIAL: what becomes of a statement of this payment and of one that nobody asked for.
filed() {
    text=$(statement "serial_no,cust_no,op_code,amount_minor,currency\\n$1,C1,WITHDRAW,5,EUR\\nnobody,C1,WITHDRAW,1,EUR\\n" --json --yes 1 2>/dev/null)
    code=$?
    printf '%s\n' "$text" | grep -o '"\(done\|known\|unknown\)": [0-9]*' | paste -sd ' ' -
    return $code
}

# all_rows: how many rows there are of what a purge removes.
all_rows() {
    sql "SELECT (SELECT COUNT(*) FROM trade_lock) + (SELECT COUNT(*) FROM trade_lock_past) +
        (SELECT COUNT(*) FROM trade_evidence) + (SELECT COUNT(*) FROM trade_resolution) +
        (SELECT COUNT(*) FROM tl_session)"
}

# purged AGE: how many trades a purge removes; a dry run before it says the same, and removes none.
purged() {
    before=$(all_rows)
    dry=$(tradelock purge --json --older "$1" --dry-run) || return
    case $dry in *'"dry_run": true'*) ;; *) echo 'the dry run was none' ;; esac
    [ "$(all_rows)" = "$before" ] || echo 'the dry run removed rows'
    text=$(tradelock purge --json --older "$1") || return
    [ "$(printf '%s\n' "$dry" | sed 's/"dry_run": true/"dry_run": false/')" = "$text" ] ||
        printf 'the dry run said %s\nthe purge %s\n' "$dry" "$text"
    case $text in *'"trades": 0,'*) [ "$(all_rows)" = "$before" ] || echo 'rows went' ;; esac
    printf '%s\n' "$text" | grep -o '"trades": [0-9]*'
}

# quick COMMAND...: with settings by which a session is soon silent.
quick() {
    TRADELOCK_CONFIG=$ADMIN.quick
    (
        umask 077
        cat "$ADMIN" - >"$TRADELOCK_CONFIG" <<TEXT
beat_ms=50
session_ms=2s
TEXT
    )
    "$@"
}

# beside STATEMENT COMMAND...: the command while a transaction holds what the statement reads.
beside() {
    sql "BEGIN; $1 FOR UPDATE; DO SLEEP(1.5); ROLLBACK" >/dev/null &
    while [ "$(sql "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'DO SLEEP%' AND db = DATABASE()")" = 0 ]; do
        sleep 0.01
    done
    shift
    "$@"
}

# paid LINES: from now on the channel's statement says so of these lines, "SERIAL,CUST\n" each.
paid() {
    # shellcheck disable=SC2059
    printf "serial_no,cust_no\n$1" >"$ADMIN.csv"
}

# found: how many violations an audit finds by that statement, and how many are closed.
found() {
    text=$(tradelock audit --json --statement "$ADMIN.csv")
    code=$?
    printf '%s violations, %s\n' "$(printf '%s\n' "$text" | grep -c '"finding"')" \
        "$(printf '%s\n' "$text" | grep -o '^  "closed": [0-9]*' | tr -d ' ')"
    return $code
}

# finding RULE: the name of the open violation of this rule.
finding() {
    tradelock audit --json --statement "$ADMIN.csv" | tr -d '\n' | tr '{' '\n' | grep "\"rule\": \"$1\"" |
        grep -o '"finding": "[0-9a-f]*"' | cut -d'"' -f4
}

# closing VERB NAME OPTION...: proposes or confirms that this violation is closed.
closing() {
    verb=$1 name=$2
    shift 2
    tradelock audit close "$verb" "$name" --reason "the bank's letter" --actor boss --statement "$ADMIN.csv" "$@"
}

# counts PATTERN NAME...: the named fields, in the order of the alphabet, of the object of `status` that
# has the pattern.
counts() {
    pattern=$1
    shift
    object=$(tradelock status --json | tr -d '\n' | tr '{' '\n' | grep -e "$pattern")
    for name in "$@"; do
        printf '%s\n' "$object" | grep -o "\"$name\": [^, }]*"
    done | sort | paste -sd ' ' -
}

# accused [OPTION...]: whom an audit accuses, as "RULE VIOLATIONS: TRADE...".
accused() {
    text=$(tradelock audit --json "$@")
    code=$?
    printf '%s\n' "$text" | tr -d '\n' | tr '{' '\n' | awk -F'"' '
        $2 == "rule" && $6 == "violations" { total[$4] = $7; gsub(/[^0-9]/, "", total[$4]) }
        $6 == "rule" { who[$8] = who[$8] " " $12 ($16 == "C1" ? "" : " of " $16) }
        END { for (rule in who) print rule " " total[rule] ":" who[rule] }' | sort
    return $code
}

# compared TEXT OPTION...: the same by a statement with these bytes.
compared() {
    # shellcheck disable=SC2059
    printf "$1" >"$ADMIN.csv"
    shift
    accused --statement "$ADMIN.csv" "$@"
}

# same OPTION...: the sums of an audit, which are those of a report of the same range.
same() {
    told=$(tradelock report --by currency,state "$@") || return
    case $(tradelock audit --every 1h "$@" 2>/dev/null) in *"
$told") printf '%s\n' "$told" ;; *) echo 'the audit comes to other sums' ;; esac
}

# key SERIAL: the trade's channel key.
key() {
    sql "SELECT channel_key FROM trade_lock WHERE serial_no = '$1' AND lane = 'S'"
}

# bank TEXT [ENCODING]: the bank's file holds this text from now on.
bank() {
    # shellcheck disable=SC2059
    printf "$1" | iconv -f utf-8 -t "${2:-utf-8}" >"$ADMIN.csv"
}

# file OPTION...: evidence of the bank's file; look OPTION...: the audit beside it.
file() {
    tradelock evidence add --statement "$ADMIN.csv" --source bank --reason daily "$@"
}
look() {
    text=$(tradelock audit --statement "$ADMIN.csv" "$@")
    code=$?
    printf '%s\n' "$text" | sed -n '/^The file/,$p'
    return $code
}

# profile TEXT: settings of this section besides, in $ADMIN.cnf.
profile() {
    (
        umask 077
        # shellcheck disable=SC2059
        { cat "$ADMIN" && printf "$1"; } >"$ADMIN.cnf"
    )
}

# with SETTING COMMAND...: with this setting besides.
with() {
    (
        umask 077
        { cat "$TRADELOCK_CONFIG" && printf '\n[tradelock]\n%s\n' "$1"; } >"$ADMIN.with"
    )
    shift
    TRADELOCK_CONFIG=$ADMIN.with "$@"
}

# text_columns: TABLE.COLUMN of each text column of the schema.
text_columns() {
    sql "SELECT CONCAT(c.table_name, '.', c.column_name) FROM information_schema.columns c
        JOIN information_schema.tables t USING (table_schema, table_name)
        WHERE c.table_schema = DATABASE() AND t.table_schema = DATABASE()
            AND t.table_type = 'BASE TABLE'
            AND c.table_name REGEXP '^(trade_|tl_|audit_|resource_|rw_|row_)'
            AND c.data_type IN ('char', 'varchar', 'varbinary', 'text', 'blob', 'mediumblob', 'longtext')" |
        LC_ALL=C sort
}

# where_is TEXT: the columns in which the text stands.
where_is() {
    sql "$(text_columns | sed "s/\(.*\)\.\(.*\)/(SELECT '&' FROM \1 WHERE INSTR(\2, '$1') LIMIT 1)/" |
        sed '$!s/$/ UNION ALL/')" | paste -sd ' ' -
}

# tx SERIAL [AMOUNT [CURRENCY [REST]]]: a transaction of the trade's channel key.
tx() {
    printf '<NtryDtls><TxDtls><Refs><EndToEndId>%s</EndToEndId></Refs>%s%s</TxDtls></NtryDtls>\n' \
        "$(key "$1")" "${2:+<Amt Ccy=\"${3:-EUR}\">$2</Amt>}" "$4"
}

# batch N: the entry says that it is of so many; entry AMOUNT DIRECTION STATUS [REST].
batch() {
    printf '<NtryDtls><Btch><NbOfTxs>%s</NbOfTxs></Btch></NtryDtls>' "$1"
}
entry() {
    printf '<Ntry><Amt Ccy="EUR">%s</Amt><CdtDbtInd>%s</CdtDbtInd><Sts><Cd>%s</Cd></Sts>\n%s</Ntry>' "$1" "$2" "$3" "$4"
    printf '\\n'
}

# camt ENTRIES: the bank's file is a camt.053 of these.
camt() {
    # shellcheck disable=SC2059
    {
        printf '<?xml version="1.0" encoding="UTF-8"?>\n'
        printf '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><Stmt>\n'
        printf "$1"
        printf '\n</Stmt></BkToCstmrStmt></Document>\n'
    } >"$ADMIN.csv"
}

# completed WORD...: what bash offers for the last one, in one line.
completed() {
    [ -d "$ADMIN.complete" ] || "$TL_SOURCE_DIR/tools/packaging/completion" \
        --bin "$(dirname "$(command -v tradelock)")" --out "$ADMIN.complete" tradelock || return
    # shellcheck disable=SC2016 # the other shell's
    bash --norc -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tradelock
        printf "%s\n" "${COMPREPLY[@]}"' "$ADMIN.complete/bash/tradelock" "$@" | LC_ALL=C sort |
        paste -sd ' ' -
}
