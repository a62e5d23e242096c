# Turns a public header into a page of section 3: its story, then its functions and types in the
# header's order.
#   -v page=NAME  -v include=tradelock/x.h  -v library=pkg-config's name  -v date=  -v version=
#   -v see=       other pages, with commas between
# What it knows of the form: the first comment begins with "name.h - what it is"; a comment at the
# beginning of a line belongs to the code that follows up to the next empty line or comment.

# The text of a comment, line by line, without what makes it a comment.
function bare(line)
{
    sub(/^ ?\/\*+ ?/, "", line)
    sub(/ ?\*+\/ *$/, "", line)
    sub(/^ \* ?/, "", line)
    sub(/^ \*$/, "", line)
    return line
}

# Sentences flow; what is indented stays as it is; capitals alone are a heading.
function show_text(text,    line, count, i, inside, gap)
{
    count = split(text, line, "\n")
    for (i = 1; i <= count; i++) {
        if (line[i] ~ /^  / && !inside) {
            out(".PP\n.nf\n.RS")
            inside = 1
        } else if (inside && line[i] !~ /^  / && line[i] != "") {
            out(".RE\n.fi\n.PP")
            inside = gap = 0
        }
        if (line[i] == "") {
            gap = 1
        } else if (line[i] ~ /^[A-Z][A-Z ,]+$/) {
            out(".SS " line[i])
            gap = 0
        } else {
            if (gap && inside)
                out("")
            else if (gap)
                out(".PP")
            gap = 0
            if (inside)
                sub(/^  ? ? ?/, "", line[i])
            out(inside ? verbatim(line[i]) : escape(line[i]))
        }
    }
    if (inside)
        out(".RE\n.fi")
}

function show_code(code,    line, count, i)
{
    out(".PP\n.nf")
    count = split(code, line, "\n")
    for (i = 1; i <= count; i++)
        if (line[i] != "")
            out("\\fB" verbatim(line[i]) "\\fR")
    out(".fi")
}

# A comment with its code is over: functions have their names as the heading.
function flush(    names, rest)
{
    if (code ~ /TL_EXPORT/) {
        rest = code
        while (match(rest, /tl_[a-z0-9_]+\(/)) {
            if (substr(rest, 1, RSTART) ~ /TL_EXPORT[^;(]*$/) {
                name = substr(rest, RSTART, RLENGTH - 1)
                names = names (names == "" ? "" : ", ") name
                all = all ", " name
            }
            rest = substr(rest, RSTART + RLENGTH)
            if (match(rest, /TL_EXPORT/))
                rest = substr(rest, RSTART)
            else
                rest = ""
        }
        gsub(/\n          /, "\n", code)
        gsub(/TL_EXPORT /, "", code)
    }
    count++
    heading[count] = names
    text_of[count] = comment
    code_of[count] = code
    comment = code = ""
}

# What is for the compiler alone: guards, includes, C++.
/^#(if|ifdef|ifndef)/ { skipping++; if (/TRADELOCK_.*_H$/) skipping-- ; next }
/^#endif/ { if (skipping > 0) skipping--; next }
skipping > 0 || /^#include/ || /^#define TRADELOCK_.*_H$/ { next }

/^\/\*/ || in_comment {
    if (!in_comment && code != "")
        flush()
    if (!in_comment && comment != "")
        flush()
    if (/^\/\* -+ .* -- \*\/$/) {
        divider = $0
        gsub(/^\/\* -+ | -- \*\/$/, "", divider)
        comment = toupper(divider)
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

/^$/ { if (comment != "" && code != "" && depth <= 0) flush(); else if (code != "" && depth <= 0) flush(); next }
{
    code = code (code == "" ? "" : "\n") $0
    depth += gsub(/{/, "{") - gsub(/}/, "}")
}

END {
    if (comment != "" || code != "")
        flush()
    # The first sentence of the story is the page's; it may take several lines.
    end = index(story, "\n\n")
    first = end > 0 ? substr(story, 1, end - 1) : story
    rest = end > 0 ? substr(story, end + 2) : ""
    gsub(/\n/, " ", first)
    sub(/^[a-z_\/]+\.h - /, "", first)
    brief = first
    if (match(brief, /[.] /)) {
        rest = substr(brief, RSTART + 2) "\n\n" rest
        brief = substr(brief, 1, RSTART - 1)
    }
    sub(/\.$/, "", brief)
    printf ".TH %s 3 \"%s\" \"tradelock %s\" \"tradelock\"\n", toupper(page), date, version
    out(".SH NAME")
    out(verbatim(page all) " \\- " escape(brief))
    out(".SH SYNOPSIS\n.nf")
    out("\\fB#include <" include ">\\fR")
    out("")
    out("\\fBcc \\&... $(pkg\\-config \\-\\-cflags \\-\\-libs " verbatim(library) ")\\fR")
    out(".fi")
    out(".SH DESCRIPTION")
    show_text(rest)
    out(".SH DECLARATIONS")
    for (i = 1; i <= count; i++) {
        if (heading[i] != "")
            out(".SS " heading[i])
        if (heading[i] != "" && code_of[i] != "")
            show_code(code_of[i])
        if (text_of[i] != "") {
            if (text_of[i] !~ /^[A-Z][A-Z ,]+$/)
                out(".PP")
            show_text(text_of[i])
        }
        if (heading[i] == "" && code_of[i] != "")
            show_code(code_of[i])
    }
    see_also(see)
}
