# Reads a public header for those that make pages of it.  `story` is its first comment, which begins
# with "name.h - what it is".  Then come `count` blocks: a comment, and the code that follows it up to
# the next empty line or comment.
#   text_of[n], code_of[n]   both; a divider is a block without code, in capitals
#   task_of[n]               the divider that it stands below
#   calls_of[n]              its functions, with commas between
#   names_of[n]              these, its types and its constants

# The text of a comment, line by line, without what makes it a comment.
function bare(line)
{
    sub(/^ ?\/\*+ ?/, "", line)
    sub(/ ?\*+\/ *$/, "", line)
    sub(/^ \* ?/, "", line)
    sub(/^ \*$/, "", line)
    return line
}

# The first sentence of a text, without its full stop; what follows it is left in `rest`.
function first_sentence(text,    end, first)
{
    end = match(text, /\n\n|\n  /)
    first = end > 0 ? substr(text, 1, end - 1) : text
    rest = end > 0 ? substr(text, end + 1) : ""
    sub(/^\n/, "", rest)
    gsub(/\n/, " ", first)
    if (match(first, /[^ ,.][.] /)) {
        rest = substr(first, RSTART + 3) "\n\n" rest
        first = substr(first, 1, RSTART)
    }
    sub(/[.:]$/, "", first)
    return first
}

function add_name(name)
{
    if (name in has_name || code_of[block] ~ ("#undef " name))
        return
    has_name[name]
    names = names (names == "" ? "" : ", ") name
}

function find_calls(code,    name)
{
    while (match(code, /TL_EXPORT[^;(]*[ *]tl_[a-z0-9_]+\(/)) {
        name = substr(code, RSTART, RLENGTH - 1)
        code = substr(code, RSTART + RLENGTH)
        sub(/.*[ *]/, "", name)
        add_name(name)
    }
}

function find_types(code,    type, line, lines, i)
{
    lines = split(code, line, "\n")
    for (i = 1; i <= lines; i++)
        if (match(line[i], /^typedef [^{(;]*[ *]tl_[a-z0-9_]+;|} tl_[a-z0-9_]+;/) ||
            match(line[i], /^typedef [^()]*\([*]tl_[a-z0-9_]+\)/)) {
            type = substr(line[i], RSTART, RLENGTH)
            gsub(/^.*[ *]|[;)]/, "", type)
            add_name(type)
        }
}

# Macros, and the members of an enum.
function find_constants(code,    word, words, i)
{
    gsub(/\/[*]([^*]|[*]+[^*\/])*[*]+\//, "", code)
    words = split(code, word, /[ \n,]+/)
    for (i = 2; i <= words; i++)
        if (word[i - 1] == "#define" && match(word[i], /^TL_[A-Z0-9_]+/))
            add_name(substr(word[i], 1, RLENGTH))
    if (!match(code, /enum [a-z_]+ {[^#}]*}/))
        return
    words = split(substr(code, RSTART, RLENGTH), word, /[ \n,]+/)
    for (i = 1; i <= words; i++)
        if (word[i] ~ /^TL_[A-Z0-9_]+$/ && word[i - 1] != "=")
            add_name(word[i])
}

# A comment with its code is over.  Constants without a comment belong to what they follow.
function flush()
{
    if (comment == "" && code ~ /^#define/ && code_of[count] != "")
        code_of[count] = code_of[count] "\n\n" code
    else {
        count++
        text_of[count] = comment
        code_of[count] = code
        task_of[count] = task
    }
    comment = code = ""
}

# What is for the compiler alone: guards, includes, C++.
/^#(if|ifdef|ifndef)/ { skipping++; if (/TRADELOCK_.*_H$/) skipping--; next }
/^#else/ { if (skipping == 1) skipping = 0; next }
/^#endif/ { if (skipping > 0) skipping--; next }
skipping > 0 || /^#include/ || /^#define TRADELOCK_.*_H$|^#define TL_EXPORT/ { next }

/^\/\*/ || in_comment {
    if (!in_comment && (code != "" || comment != ""))
        flush()
    if (/^\/\* -+ .* -- \*\/$/) {
        task = $0
        gsub(/^\/\* -+ | -- \*\/$/, "", task)
        comment = toupper(task)
        flush()
        next
    }
    line = bare($0)
    if (!(comment == "" && line == ""))
        comment = comment (comment == "" ? "" : "\n") line
    in_comment = !/\*\/ *$/
    if (!in_comment && story == "") {
        story = comment
        comment = ""
    }
    next
}

/^$/ { if (code != "" && depth <= 0) flush(); next }
{
    code = code (code == "" ? "" : "\n") $0
    depth += gsub(/{/, "{") - gsub(/}/, "}")
}

END {
    if (comment != "" || code != "")
        flush()
    for (block = 1; block <= count; block++) {
        split("", has_name)
        names = ""
        find_calls(code_of[block])
        calls_of[block] = names
        find_types(code_of[block])
        find_constants(code_of[block])
        names_of[block] = names
        if (gsub(/TL_EXPORT /, "", code_of[block]) > 0)
            gsub(/\n          /, "\n", code_of[block])
    }
    sub(/^[a-z_\/]+\.h - /, "", story)
    brief = first_sentence(story)
}
