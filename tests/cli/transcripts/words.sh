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
    found=$(tradelock ls -o csv --columns serial,lane "$@") || return
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
    while page=$(tradelock ls --json --limit "$limit" "$@" ${next:+--after "$next"} 2>/dev/null); do
        printf '%s\n' "$page"
        case $page in *'"more": true'*) ;; *) break ;; esac
        next=${page##*'"next": "'} next=${next%'"'*}
    done | awk -F'"' '/"serial_no"/ { rows++; different += !seen[$4, $8, $12]++ } /"count"/ { pages++ }
        END { print rows " rows, " different " different, " pages " pages" }'
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
