#!/usr/bin/env bash
# Sourced: a bare Debian 12 in the folder $root, a copy of one that is made once for all tests and
# kept, and the folder $packages.  Needs root and network, as fresh_debian.
# shellcheck disable=SC2034 # for those who source this
set -euo pipefail

packages=$TL_BUILD_DIR/packages
root=$TL_BUILD_DIR/bare-debian.test
trap 'rm -rf "$root"' EXIT
rm -rf "$root"
[ -d "${root%.test}" ] ||
    "$TL_SOURCE_DIR/tools/dev/fresh-debian-test" --dir "${root%.test}" --keep true
cp -a "${root%.test}" "$root"
# debian COMMAND...: there, in a clone of what is committed.
debian() {
    "$TL_SOURCE_DIR/tools/dev/fresh-debian-test" --dir "$root" --keep "$@"
}

# certificates DIR NAME: of an authority, and of the server of this name.
certificates() {
    local new_key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
    mkdir -p "$1"
    {
        openssl req -x509 "${new_key[@]}" -subj /CN=authority -days 2 -keyout "$1/ca-key.pem" \
            -out "$1/ca.pem"
        openssl req "${new_key[@]}" -subj "/CN=$2" -keyout "$1/server-key.pem" |
            openssl x509 -req -days 2 -CA "$1/ca.pem" -CAkey "$1/ca-key.pem" -CAcreateserial \
                -out "$1/server-cert.pem"
    } 2>"$1/log"
    chmod 644 "$1"/*.pem
}
