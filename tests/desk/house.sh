#!/usr/bin/env bash
# Sourced: the house of tools/quickstart --desk, in which COMPLAINT-1 hangs, as $house and $run.
dir=$(mktemp -d "$TL_BUILD_DIR/desk-house.XXXXXX")
house=
run=
house_finish() {
    if [ -n "$house" ]; then
        kill "$house" 2>/dev/null || true
        wait "$house" 2>/dev/null || true
    fi
    rm -rf "$dir"
}
trap house_finish EXIT
complain() {
    printf 'FAILED: %s\n' "$*"
    cat "$dir/log"
    exit 1
}

# house_open ROWS.csv: what it printed is in $dir/log.
house_open() {
    tools/quickstart "$1" --desk --build "$TL_BUILD_DIR" --out "$dir/answers.csv" \
        >"$dir/log" 2>&1 &
    house=$!
    until grep -q '^A customer complains' "$dir/log"; do
        jobs -rp | grep -qx "$house" || complain 'the house has ended'
        sleep 0.2
    done
    run=$(sed -n 's/^Its folder: //p' "$dir/log")
}

# What was frozen for the payment is free again, and nothing of the house is left.
house_close() {
    local money code=0
    money=$(mariadb --defaults-file="$run/admin.cnf" -BNe "SELECT CONCAT(balance_minor, ' ',
        frozen_minor) FROM account WHERE cust_no = 'C-ANNA'" tradelock)
    [ "$money" = '1000000 0' ] || complain "C-ANNA has $money"
    ! grep -q COMPLAINT "$run/desk.log" || complain 'the desk logged a serial number'
    kill "$house"
    wait "$house" || code=$?
    house=
    [ $code -eq 0 ] || complain "the house ended with $code"
    [ ! -d "$run" ] || complain "$run is still there"
}
