# What the makers of manual pages share: text as roff has it.

# Prints lines, to the file `to` where it is set; a paragraph begins only where there is something to
# part.
function out(text,    line, count, i)
{
    if (to == "")
        to = "/dev/stdout"
    count = split(text, line, "\n")
    if (count == 0)
        print "" >to
    for (i = 1; i <= count; i++) {
        if (line[i] == ".PP") {
            parted = !headed
            continue
        }
        if (parted && line[i] !~ /^\.S[HS] /)
            print ".PP" >to
        parted = 0
        headed = line[i] ~ /^\.S[HS] /
        print line[i] >to
    }
}

# As it is, also at the beginning of a line.
function verbatim(text)
{
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/'/, "\\(aq", text)
    gsub(/\^/, "\\(ha", text)
    gsub(/~/, "\\(ti", text)
    return text ~ /^\./ ? "\\&" text : text
}

# What stands between backquotes is what one types; between stars, a word that is explained.
function escape(text,    parts, count, i, result)
{
    count = split(verbatim(text), parts, "`")
    result = parts[1]
    for (i = 2; i <= count; i++)
        result = result (i % 2 == 0 ? "\\fB" : "\\fR") parts[i]
    while (match(result, /\*[a-z][a-z ]*[a-z]\*/))
        result = substr(result, 1, RSTART - 1) "\\fI" substr(result, RSTART + 1, RLENGTH - 2) \
            "\\fR" substr(result, RSTART + RLENGTH)
    return result
}

# "tradelock(1),tradelock.cnf(5)" as the section of pages to see.
function see_also(list,    also, count, i, part)
{
    out(".SH SEE ALSO")
    count = split(list, also, ",")
    for (i = 1; i <= count; i++) {
        split(also[i], part, "(")
        gsub(/-/, "\\-", part[1])
        out(".BR " part[1] " (" part[2] (i < count ? "," : ""))
    }
}
