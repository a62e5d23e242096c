#!/usr/bin/env bash
# Sourced, in the source tree: how the programs of these tests are compiled, under harsh warnings.
# shellcheck disable=SC2034 # for those who source this
read -r -a compilers <<<"$TL_CXX_COMPILERS"
read -r -a more <<<"${TL_CXX_FLAGS:-}"
read -r -a mariadb < <(pkg-config --cflags libmariadb)
# compile COMPILER SOURCE PROGRAM [OPTION...]
compile() {
    "$1" -std=c++17 -O1 -g -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast \
        -Wcast-qual -Wzero-as-null-pointer-constant -Werror "${more[@]}" -I core/include \
        -I workflows/include "${mariadb[@]/#-I/-isystem}" "$2" -o "$3" "${@:4}" \
        "-L$TL_BUILD_DIR/lib" "-Wl,-rpath,$TL_BUILD_DIR/lib" -ltradelock-workflow -ltradelock \
        -lmariadb -pthread || complain "$1 does not compile $2"
}
