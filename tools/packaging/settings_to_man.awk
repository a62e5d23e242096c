# Turns config/tradelock.cnf, which is made from the table of settings, into tradelock.cnf(5).
#   -v date=, -v version=, -v see=
# What it knows of the form: comments at the beginning, [section], paragraphs of comments, and
# "#name = default" below the text of its setting.

function show(    i)
{
    for (i = 1; i <= count; i++)
        out(text[i] == "" ? ".PP" : escape(text[i]))
    count = 0
}

BEGIN {
    printf ".TH TRADELOCK.CNF 5 \"%s\" \"tradelock %s\" \"tradelock\"\n", date, version
    out(".SH NAME")
    out("tradelock.cnf \\- settings of services, workers and operators of tradelock")
    out(".SH SYNOPSIS")
    out("\\fI/etc/tradelock.cnf\\fR")
    out(".SH DESCRIPTION")
}

/^\[/ {
    out(".SH SECTION " verbatim(toupper($0)))
    show()
    out(".PP")
    next
}

# The connection's settings are libmariadb's own, and stand side by side.
/^#[a-z][a-z_-]* = / || /^#[a-z][a-z_-]* =$/ {
    setting = substr($0, 2)
    if (count > 0) {
        out(".TP")
        out("\\fB" verbatim(setting) "\\fR")
        show()
    } else {
        out(".PP")
        out("\\fB" verbatim(setting) "\\fR")
    }
    next
}

/^#/ {
    sub(/^# ?/, "")
    text[++count] = $0
    next
}

# An empty line ends what is of no setting.
count > 0 {
    show()
    out(".PP")
}

END {
    show()
    out(".SH FILES")
    out("Programs read the file that \\fB\\-\\-config\\fR names.")
    out("\\fBtradelock\\fR else looks at \\fI$TRADELOCK_CONFIG\\fR,")
    out("\\fI./tradelock.cnf\\fR and \\fI/etc/tradelock.cnf\\fR.")
    see_also(see)
}
