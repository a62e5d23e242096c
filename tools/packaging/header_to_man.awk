# Turns a public header, as header.awk reads it, into pages of section 3: one of the header, with its
# story and then its functions and types in the header's order; and one for each call, type and
# constant, which is named by its own first sentence.
#   -v page=NAME  -v include=tradelock/x.h  -v library=pkg-config's name  -v date=  -v version=
#   -v see=       other pages, with commas between
#   -v dir=       where the pages are written

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

function show_code_lines(code,    line, lines, i)
{
    lines = split(code, line, "\n")
    for (i = 1; i <= lines; i++)
        if (line[i] != "")
            out("\\fB" verbatim(line[i]) "\\fR")
}

function show_code(code)
{
    out(".PP\n.nf")
    show_code_lines(code)
    out(".fi")
}

# begin NAME NAMES SENTENCE: a page of its own, up to its synopsis.
function begin(name, names, sentence)
{
    if (to != "")
        close(to)
    to = dir "/" name ".3"
    headed = parted = 0
    out(".TH " toupper(name) " 3 \"" date "\" \"tradelock " version "\" \"tradelock\"")
    out(".SH NAME")
    out(verbatim(names) " \\- " escape(sentence))
    out(".SH SYNOPSIS\n.nf")
    out("\\fB#include <" include ">\\fR")
    out("")
}

# As a sentence goes on behind the name of a page.
function continued(sentence)
{
    return sentence ~ /^[A-Z][a-z ]/ ? tolower(substr(sentence, 1, 1)) substr(sentence, 2) : sentence
}

# The page of a call or type, with all that is declared with it.
function show_block(n,    name, sentence)
{
    name = names_of[n]
    sub(/,.*/, "", name)
    sentence = continued(first_sentence(text_of[n]))
    if (sentence == "")
        sentence = "of <" include ">: " (task_of[n] != "" ? task_of[n] : brief)
    begin(name, names_of[n], sentence)
    show_code_lines(code_of[n])
    out(".fi")
    if (text_of[n] != "") {
        out(".SH DESCRIPTION")
        show_text(text_of[n])
    }
    see_also(page "(3)")
}

# The constants of a map, by the enum that is made of it: each is a line X(number, NAME, ..., "text").
function show_map(enum,    prefix, map, type, n, i, lines, line, part, text)
{
    match(code_of[enum], /TL_[A-Z_]*##name/)
    prefix = substr(code_of[enum], RSTART, RLENGTH - 6)
    match(code_of[enum], /TL_[A-Z_]+_MAP/)
    map = substr(code_of[enum], RSTART, RLENGTH)
    type = names_of[enum]
    for (n = 1; names_of[n] != map; n++)
        continue
    lines = split(code_of[n], line, "\n")
    for (i = 2; i <= lines; i++) {
        split(line[i], part, /[(,] */)
        text = line[i]
        gsub(/^[^"]*"|"[^"]*$/, "", text)
        sub(/ *\\$/, "", line[i])
        begin(prefix part[3], prefix part[3], text)
        show_code_lines(line[i])
        out(".fi")
        out(".SH DESCRIPTION")
        out("A \\fB" type "\\fR, by its line in \\fB" map "\\fR.")
        out(".PP")
        show_text(text_of[n])
        see_also(type "(3)," page "(3)")
    }
}

END {
    begin(page, page, brief)
    out("\\fBcc \\&... $(pkg\\-config \\-\\-cflags \\-\\-libs " verbatim(library) ")\\fR")
    out(".fi")
    out(".SH DESCRIPTION")
    show_text(rest)
    out(".SH DECLARATIONS")
    for (i = 1; i <= count; i++) {
        if (calls_of[i] != "")
            out(".SS " calls_of[i])
        if (calls_of[i] != "" && code_of[i] != "")
            show_code(code_of[i])
        if (text_of[i] != "") {
            if (text_of[i] !~ /^[A-Z][A-Z ,]+$/)
                out(".PP")
            show_text(text_of[i])
        }
        if (calls_of[i] == "" && code_of[i] != "")
            show_code(code_of[i])
    }
    see_also(see)
    for (i = 1; i <= count; i++)
        if (names_of[i] != "") {
            show_block(i)
            if (code_of[i] ~ /##name/)
                show_map(i)
        }
}
