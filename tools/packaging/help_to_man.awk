# Turns the --help of a program, or of a command of one, into a page of section 1.
#   -v page=NAME   such as tradelock-ls
#   -v brief=TEXT  its line in the list of commands; without one, the help's first sentence
#   -v date=, -v version=, -v see=  see: other pages, with commas between
# What it knows of the form: "Usage:" and the lines that are indented below it; paragraphs; lists
# whose lines begin with two blanks and "-" or, below "Commands:", a word.

function section(name)
{
    fresh = open != name
    if (fresh)
        out(".SH " name)
    open = name
}

# A paragraph about exit codes is a section that people look for.
function paragraph(text)
{
    if (text == "")
        return
    if (text ~ /^(Exit codes:|Ends with 0)/)
        section("EXIT STATUS")
    else
        section(open == "" ? "DESCRIPTION" : open == "DESCRIPTION" ? open : "NOTES")
    if (!fresh)
        out(".PP")
    out(escape(text))
}

# "  --op OP         only this" and "  --cust CUST only this": the words of the option, then the text.
function item(line,    key, text)
{
    sub(/^ +/, "", line)
    if (match(line, /  +/)) {
        key = substr(line, 1, RSTART - 1)
        text = substr(line, RSTART + RLENGTH)
    } else if (match(line, /^(-[a-z], )?--[a-z-]+ [A-Z|]+ /) || match(line, /^[a-z]+ /)) {
        key = substr(line, 1, RLENGTH - 1)
        text = substr(line, RLENGTH + 1)
    } else {
        key = line
        text = ""
    }
    out(".TP")
    if (list == "COMMANDS") {
        out(".BR tradelock\\-" key " (1)")
    } else {
        out("\\fB" escape(key) "\\fR")
    }
    if (text != "")
        out(escape(text))
}

function finish_usage(    i)
{
    if (brief == "") {
        brief = body
        sub(/[.]( .*)?$/, "", brief)
    }
    brief = tolower(substr(brief, 1, 1)) substr(brief, 2)
    printf ".TH %s 1 \"%s\" \"tradelock %s\" \"tradelock\"\n", toupper(page), date, version
    out(".SH NAME")
    out(escape(page) " \\- " escape(brief))
    out(".SH SYNOPSIS")
    out(".nf")
    for (i = 1; i <= uses; i++)
        out("\\fB" escape(use[i]) "\\fR")
    out(".fi")
    open = ""
    state = "text"
}

{ lines[NR] = $0 }

END {
    # The first paragraph after the usage tells what the page is about.
    for (i = 2; i <= NR && lines[i] != ""; i++)
        continue
    for (i++; i <= NR && lines[i] != ""; i++)
        body = body (body == "" ? "" : " ") lines[i]
    for (i = 1; i <= NR && lines[i] != ""; i++) {
        use[++uses] = lines[i]
        sub(/^([Uu]sage: | +)/, "", use[uses])
    }
    finish_usage()
    text = ""
    for (; i <= NR; i++) {
        line = lines[i]
        if (line ~ /^(Options|Commands|Examples):$/) {
            paragraph(text); text = ""
            list = toupper(substr(line, 1, length(line) - 1))
            section(list)
        } else if (line ~ /^  -/ || (list == "COMMANDS" && line ~ /^  [a-z]/)) {
            paragraph(text); text = ""
            if (list == "")
                section("OPTIONS")
            list = list == "" ? "OPTIONS" : list
            item(line)
        } else if (list == "EXAMPLES" && line ~ /^  /) {
            out(".PP\n\\fB" escape(substr(line, 3)) "\\fR")
        } else if (line ~ /^   / && list != "") {
            sub(/^ +/, "", line)
            out(escape(line))
        } else if (line == "") {
            paragraph(text); text = ""
        } else {
            list = ""
            text = text (text == "" ? "" : "\n") line
        }
    }
    paragraph(text)
    see_also(see)
}
