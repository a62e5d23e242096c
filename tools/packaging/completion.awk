# Turns the --help of programs and commands into completions for a shell.
#   -v shell=bash or zsh
# The input is each help in turn, below a line "@PROGRAM [COMMAND]".  What it knows of the form:
#   the usage, in which small letters, as in "add|ls SERIAL", are words to choose from;
#   options "  -o, --output FORM  text" and "  --status P|F|Y  text";
#   below "Commands:", "  ls        list locks".

function add(list, word)
{
    return index(" " list " ", " " word " ") ? list : list (list == "" ? "" : " ") word
}

# What may follow an option: words to choose from, a file, or anything.  Of @channels and @columns the
# command is asked.  The text of an option may be its words: "SUCCEEDED FAILED ...".
function kind_of(argument, text)
{
    if (argument == "")
        return "none"
    if (argument == "CHANNEL" || argument == "COLUMNS")
        return "@" tolower(argument) (argument == "CHANNEL" ? "s" : "")
    if (text ~ /^[A-Z_]+( [A-Z_]+)+$/)
        return text
    if (argument ~ /^[A-Za-z]+(\|[A-Za-z]+)+$/ || argument ~ /^[a-z]+$/) {
        gsub(/\|/, " ", argument)
        return argument
    }
    return argument ~ /^FILE/ ? "FILE" : argument == "DIR" ? "DIR" : "TEXT"
}

function option(line,    key, text, words, count, i, name, next_word, kind, old)
{
    sub(/^ +/, "", line)
    text = ""
    # "--cust CUST only this customer" has one blank; the argument is the word in capitals.
    if (match(line, /  +/)) {
        key = substr(line, 1, RSTART - 1)
        text = substr(line, RSTART + RLENGTH)
    } else if (match(line, /^(-[a-z], )?--[a-z-]+( [A-Z][^ ]*)?( --[a-z-]+ [A-Z]+)?/))
        key = substr(line, 1, RLENGTH)
    gsub(/,/, "", key)
    count = split(key, words, " ")
    for (i = 1; i <= count; i++) {
        if (words[i] !~ /^-/)
            continue
        name = words[i]
        options[here] = add(options[here], name)
        # That of "-o, --output FORM" is of both.
        next_word = words[i] ~ /^-[a-z]$/ ? words[i + 2] : words[i + 1]
        kind = kind_of(next_word ~ /^-/ ? "" : next_word, text)
        old = after[here, name]
        after[here, name] = old == "" || old == kind || kind !~ /^[a-z ]+$/ ? kind : add(old, kind)
    }
}

/^@/ {
    here = substr($0, 2)
    helps[++count] = here
    if (here !~ / /)
        programs[++program_count] = here
    listing = in_usage = 0
    next
}
/^[Uu]sage: / { in_usage = 1 }
/^$/ { in_usage = listing = 0 }
in_usage {
    # Of "tradelock evidence add|ls SERIAL ... | add --statement FILE" the words in small letters.
    line = $0
    sub(/^([Uu]sage:)? +/, "", line)
    own = here
    if (index(line, "tradelock desk") == 1)
        sub(/-/, " ", own)
    if (index(line, own) == 1)
        line = substr(line, length(own) + 1)
    words = split(line, token, " ")
    for (i = 1; i <= words; i++) {
        sub(/^\[/, "", token[i])
        if (token[i] == "CHANNEL")
            words_of[here] = add(words_of[here], "@channels")
        if (token[i] !~ /^[a-z]+(\|[a-z]+)*$/)
            continue
        choices = split(token[i], choice, "|")
        for (j = 1; j <= choices; j++)
            words_of[here] = add(words_of[here], choice[j])
    }
}
/^Commands:$/ { listing = 1; next }
listing && /^  [a-z]/ {
    commands[here] = add(commands[here], $1)
    brief[here, $1] = $0
    sub(/^ +[a-z]+ +/, "", brief[here, $1])
    gsub(/['`:]/, "", brief[here, $1])
}
/^  -/ { option($0) }


# The table, as a shell's case: $1 is "tradelock ls", $2 the option before the cursor, or "words".
# It sets `kind` to FILE, DIR, TEXT, none, or the words to choose from.
function table(    i, j, n, name)
{
    print "    kind=none"
    print "    case \"$1 $2\" in"
    for (i = 1; i <= count; i++) {
        here = helps[i]
        printf "    '%s words') kind='%s' ;;\n", here, commands[here] words_of[here]
        printf "    '%s options') kind='%s' ;;\n", here, options[here]
        n = split(options[here], name, " ")
        for (j = 1; j <= n; j++)
            if (after[here, name[j]] != "none")
                printf "    '%s %s') kind='%s' ;;\n", here, name[j], after[here, name[j]]
    }
    print "    esac"
}

# The values that only the command knows.
function values()
{
    print "_tradelock_values()\n{"
    print "    case $kind in"
    print "    *@channels*) kind=\"${kind//@channels/} $(tradelock channel ls 2>/dev/null | awk 'NR > 1 && !seen[$1]++ { print $1 }')\" ;;"
    print "    @columns) kind=$(tradelock ls --columns . 2>&1 | sed 's/.*it knows //; s/;.*//; s/,/ /g') ;;"
    print "    esac"
    print "}\n"
}

# Where the cursor stands: `here` becomes "tradelock ls", `rest` is 1 behind a lone "--".
function place(first)
{
    print "    local here=${" first "##*/} word kind rest=0 index"
    print "    case $here in"
    for (i = 1; i <= program_count; i++)
        printf "    %s) ;;\n", programs[i]
    print "    *) return 1 ;;"
    print "    esac"
}

function bash(    i)
{
    print "# bash completion for tradelock.  Made from --help by tools/packaging/completion."
    print "_tradelock_kind()\n{"
    table()
    print "}\n"
    values()
    print "_tradelock()\n{"
    print "    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}"
    place("COMP_WORDS[0]")
    print "    for ((index = 1; index < COMP_CWORD; index++)); do"
    print "        word=${COMP_WORDS[index]}"
    print "        [ \"$word\" != -- ] || rest=1"
    print "        [ \"$index\" != 1 ] || [ \"$here\" != tradelock ] || here=\"tradelock $word\""
    print "    done"
    print "    COMPREPLY=()"
    print "    if [ $rest = 1 ]; then"
    print "        mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")"
    print "        return"
    print "    fi"
    print "    case $before in"
    print "    -*) _tradelock_kind \"$here\" \"$before\" ;;"
    print "    *) kind=none ;;"
    print "    esac"
    print "    if [ \"$kind\" = none ]; then"
    print "        case $cur in"
    print "        -*) _tradelock_kind \"$here\" options ;;"
    print "        *) _tradelock_kind \"$here\" words ;;"
    print "        esac"
    print "        [ -n \"$kind\" ] || kind=FILE"
    print "    fi"
    print "    if [ \"$kind\" = @columns ]; then"
    print "        _tradelock_values"
    print "        mapfile -t COMPREPLY < <(compgen -P \"${cur%\"${cur##*,}\"}\" -W \"$kind\" -- \"${cur##*,}\")"
    print "        return"
    print "    fi"
    print "    _tradelock_values"
    print "    case $kind in"
    print "    FILE) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;"
    print "    DIR) mapfile -t COMPREPLY < <(compgen -d -- \"$cur\") ;;"
    print "    TEXT | none) ;;"
    print "    *) mapfile -t COMPREPLY < <(compgen -W \"$kind\" -- \"$cur\") ;;"
    print "    esac"
    print "    case $kind in"
    print "    FILE | DIR) compopt -o filenames 2>/dev/null ;;"
    print "    esac"
    print "}"
    printf "complete -F _tradelock"
    for (i = 1; i <= program_count; i++)
        printf " %s", programs[i]
    print ""
}

function zsh(    i, n, name)
{
    printf "#compdef"
    for (i = 1; i <= program_count; i++)
        printf " %s", programs[i]
    print "\n# Made from --help by tools/packaging/completion."
    print "_tradelock_kind()\n{"
    table()
    print "}\n"
    values()
    print "_tradelock_commands()\n{"
    print "    local -a commands=("
    n = split(commands["tradelock"], name, " ")
    for (i = 1; i <= n; i++)
        printf "        '%s:%s'\n", name[i], brief["tradelock", name[i]]
    print "    )"
    print "    _describe command commands"
    print "}\n"
    print "_tradelock()\n{"
    print "    local cur=$words[CURRENT] before=$words[CURRENT-1]"
    place("words[1]")
    print "    for ((index = 2; index < CURRENT; index++)); do"
    print "        word=$words[index]"
    print "        [[ $word != -- ]] || rest=$index"
    print "        [[ $index != 2 || $here != tradelock ]] || here=\"tradelock $word\""
    print "    done"
    print "    if ((rest)); then"
    print "        shift $rest words"
    print "        ((CURRENT -= rest))"
    print "        _normal"
    print "        return"
    print "    fi"
    print "    if [[ $here == tradelock && $cur != -* ]]; then"
    print "        _tradelock_commands"
    print "        return"
    print "    fi"
    print "    kind=none"
    print "    [[ $before != -* ]] || _tradelock_kind $here $before"
    print "    if [[ $kind == none ]]; then"
    print "        if [[ $cur == -* ]]; then"
    print "            _tradelock_kind $here options"
    print "        else"
    print "            _tradelock_kind $here words"
    print "        fi"
    print "        kind=${kind:-FILE}"
    print "    fi"
    print "    [[ $kind != @columns ]] || compset -P '*,'"
    print "    _tradelock_values"
    print "    case $kind in"
    print "    (FILE) _files ;;"
    print "    (DIR) _files -/ ;;"
    print "    (TEXT|none) _message value ;;"
    print "    (*) compadd -- ${=kind} ;;"
    print "    esac"
    print "}\n"
    print "_tradelock \"$@\""
}

END {
    if (shell == "bash")
        bash()
    else
        zsh()
}
