#!/usr/bin/python3
"""bindings.py OUT.c COMPILER INCLUDE...: writes the module tradelock._tradelock in C.

Everything in it comes from the headers, after the compiler's own preprocessor: no struct and no
number is written here, and the C compiler compares each with the header once more.
"""
import re
import subprocess
import sys

import cffi

HEADER = "".join(f"#include <tradelock/{name}.h>\n" for name in ("layer", "questions", "worker"))
# Python's side of each callback: one name for each, with the prototype that the header gives it.
CALLBACKS = {"execute": "tl_execute_fn", "query": "tl_query_fn", "cancel": "tl_cancel_fn",
             "book_prepare": "tl_book_prepare_fn", "book_success": "tl_book_success_fn",
             "book_failure": "tl_book_failure_fn", "log": "tl_log_fn", "trade": "tl_trade_fn",
             "sum": "tl_sum_fn", "evidence": "tl_evidence_fn"}


def preprocess(compiler, includes, *options):
    command = [compiler, "-E", "-D__attribute__(x)=", *options, *("-I" + i for i in includes), "-"]
    return subprocess.run(command, input=HEADER, text=True, check=True, capture_output=True).stdout


def declarations(text):
    """What stands in our headers; what they include of the system's, cffi knows by itself."""
    ours, lines = False, []
    for line in text.splitlines():
        mark = re.match(r'# \d+ "([^"]*)"', line)
        if mark:
            ours = "/tradelock/" in mark[1]
        elif ours:
            lines.append(line)
    # Functions with a body are for layers that are written in C.
    return re.sub(r"static inline [^;{]*\{.*?\n\}", "", "\n".join(lines), flags=re.S)


def numbers(text):
    """The macros that are a number, such as TL_REF_MAX and the versions of the structs."""
    found = re.findall(r"^#define (TL_\w+) [(]?(?:INT64_C[(])?\d+[uU)]*$", text, flags=re.M)
    return "".join(f"#define {name} ...\n" for name in sorted(found))


def callbacks(text):
    for name, kind in CALLBACKS.items():
        result, arguments = re.search(rf"typedef (\w+) \(\*{kind}\)(\([^)]*\));", text).groups()
        yield f"{result} tradelock_{name}{arguments};"


def main(out, compiler, *includes):
    ffi = cffi.FFI()
    text = declarations(preprocess(compiler, includes))
    ffi.cdef(text + "\n" + numbers(preprocess(compiler, includes, "-dM")))
    ffi.cdef('extern "Python" {\n' + "\n".join(callbacks(text)) + "\n}")
    ffi.set_source("tradelock._tradelock", HEADER)
    ffi.emit_c_code(out)


main(*sys.argv[1:])
