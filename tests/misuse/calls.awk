# Makes the calls of test_null.c from the public headers, and from calls.txt, which says what these
# do not tell.
#   awk -f calls.awk calls.txt HEADER... >null_calls.h
# What it knows of a header's form: TL_EXPORT begins a function, and tl_..._fn is a callback.

function trim(text)
{
    gsub(/ +/, " ", text)
    sub(/^ /, "", text)
    sub(/ $/, "", text)
    return text
}

# ------------------------------------------------------------------------------ the table --

FNR == NR {
    if (/^ /)
        lines[line_count] = lines[line_count] $0
    else if ($0 != "" && !/^#/)
        lines[++line_count] = $0
    next
}

# The line's part before the sign; what is behind it stays in `behind`.
function cut(line, sign,    at)
{
    at = index(line, sign)
    behind = at > 0 ? trim(substr(line, at + length(sign))) : ""
    return at > 0 ? substr(line, 1, at - 1) : line
}

function read_table(    i, j, line, wanted, count, subject)
{
    for (i = 1; i <= line_count; i++) {
        line = cut(trim(lines[i]), " -> ")
        wanted = behind
        if (line ~ /^tl_[a-z0-9_]+:/) {
            mistakes[line] = wanted
            order[++mistake_count] = line
            continue
        }
        line = cut(line, " = ")
        count = split(line, subject, ", ")
        for (j = 1; j <= count; j++) {
            subjects[subject[j]] = 1
            if (behind != "")
                values[subject[j]] = behind
            if (wanted != "")
                answers[subject[j]] = wanted
        }
    }
}

# ---------------------------------------------------------------------------- the headers --

FNR == 1 {
    read_header()
}

/^#define TL_[A-Z_]+_INIT/ {
    type = tolower($2)
    sub(/_init$/, "", type)
    has_version[type] = 1
}

!/^#/ {
    text = text " " $0
}

function without_comments(text,    kept)
{
    while (text != "") {
        kept = kept " " cut(text, "/*")
        text = behind
        cut(text, "*/")
        text = behind
    }
    return kept
}

function is_pointer(type)
{
    return type ~ /(\*|_fn)$/
}

# The list is "(int one, const tl_key *two)" and whatever follows.
function read_arguments(name, list,    i, argument)
{
    sub(/^\(/, "", list)
    sub(/\).*/, "", list)
    argument_count[name] = list == "void" ? 0 : split(list, argument, ", ")
    pointer_count[name] = 0
    for (i = 1; i <= argument_count[name]; i++) {
        if (sub(/\[.*/, "", argument[i])) # an array is a pointer
            sub(/ /, " *", argument[i])
        match(argument[i], /[a-z0-9_.]+$/)
        argument_of[name, i] = argument[i]
        argument_name[name, i] = substr(argument[i], RSTART)
        argument_type[name, i] = trim(substr(argument[i], 1, RSTART - 1))
        pointer_count[name] += is_pointer(argument_type[name, i])
    }
}

# Of the text of one header: notes structs and functions, and writes for each type of callback one
# that does nothing.
function read_header(    code, name)
{
    text = trim(without_comments(text))
    while (match(text, /(TL_EXPORT|typedef) [^;{]*[;{]/)) {
        code = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        if (match(code, /^typedef struct tl_[a-z_]+ \{/)) {
            has_body[trim(substr(code, 16, RLENGTH - 17))] = 1
        } else if (match(code, /\(\*tl_[a-z_]+_fn\)/)) {
            name = substr(code, RSTART + 2, RLENGTH - 3)
            print "static " substr(code, 9, RSTART - 9) "stub_" name \
                substr(code, RSTART + RLENGTH, length(code) - RSTART - RLENGTH) \
                "\n{\n    " (code ~ /^typedef void/ ? "return" : "return 0") ";\n}\n"
        } else if (match(code, /tl_[a-z0-9_]+\(/)) {
            name = substr(code, RSTART, RLENGTH - 1)
            functions[++function_count] = name
            returned[name] = trim(substr(code, 11, RSTART - 11))
            read_arguments(name, substr(code, RSTART + RLENGTH - 1))
        }
    }
    text = ""
}

# ------------------------------------------------------------------------------ the calls --

function add_row(text, wanted, call)
{
    gsub(/"/, "'", text)
    rows = rows "    {\"" text "\", \"" wanted "\", " call "},\n"
}

# Rows without a call fail the test with their sentence.
function undecided(name, what)
{
    add_row(name ": tests/misuse/calls.txt has to say " what ".", "", "NULL")
}

function needless(name)
{
    add_row(name ": tests/misuse/calls.txt has it, and no call needs it.", "", "NULL")
}

# What the table says of an argument: of this one, of all that are declared so, or of its type.
function find(table, name, i,    j, key)
{
    key[1] = name "." argument_name[name, i]
    key[2] = argument_of[name, i]
    key[3] = key[4] = argument_type[name, i]
    sub(/^const /, "", key[4])
    for (j = 1; j <= 4; j++)
        if (key[j] in table) {
            used[key[j]] = 1
            return table[key[j]]
        }
    return ""
}

# What the headers alone say of a valid argument; "": nothing.
function usual_value(type, pointed)
{
    if (type == "")
        return "\"a text\"" # of "..."
    if (type ~ /_fn$/)
        return "stub_" type
    if (!is_pointer(type))
        return "1"
    if (type ~ /\*\*$/)
        return "&(" substr(type, 1, length(type) - 1) "){NULL}"
    if (pointed in has_version)
        return "initial"
    return pointed in has_body || pointed ~ /^(int|unsigned|size_t|u?int64_t)$/ ? "zeroes" : ""
}

# What the argument points at.
function pointed_at(name, i,    type)
{
    type = argument_type[name, i]
    gsub(/^const | \*$/, "", type)
    return type
}

# An argument in C.
function write_value(name, i, said,    pointed)
{
    pointed = pointed_at(name, i)
    if (said == "")
        said = find(values, name, i)
    if (said == "")
        said = usual_value(argument_type[name, i], pointed)
    if (said == "initial")
        return "&(" pointed ")" toupper(pointed) "_INIT"
    if (said == "zeroes")
        return "&(" pointed "){0}"
    if (said ~ /^\{/ && pointed in has_version)
        sub(/^\{/, "{.version = " toupper(pointed) "_VERSION, ", said)
    return said ~ /^\{/ ? "&(" pointed ")" said : said
}

# A function of C that makes one call.  said[] are values that differ from the usual ones.
function write_call(name, label, wanted, said,    i, list, one)
{
    for (i = 1; i <= argument_count[name]; i++) {
        one = write_value(name, i, said[i])
        if (one == "") {
            undecided(name, "what a valid '" argument_of[name, i] "' is")
            return
        }
        list = list (i > 1 ? ", " : "") one
    }
    print "static int call_" ++call_count "(void)\n{"
    if (wanted == "anything")
        print "    (void)" name "(" list ");\n    return 1;\n}\n"
    else
        print "    " returned[name] " got = " name "(" list ");\n\n    return " wanted ";\n}\n"
    add_row(label, wanted, "call_" call_count)
}

# What a function answers that cannot do its work, unless the table says so.
function usual_answer(name)
{
    if (returned[name] == "tl_status")
        return "is_invalid(got)"
    if (returned[name] == "void")
        return "anything"
    if (returned[name] == "const char *")
        return "is_empty(got)"
    return is_pointer(returned[name]) ? "" : "got == 0"
}

# Each pointer is NULL in its turn.
function write_null_call(name, i,    said, wanted)
{
    wanted = find(answers, name, i)
    if (wanted == "")
        wanted = name in answers ? answers[name] : usual_answer(name)
    said[i] = "NULL"
    if (wanted == "")
        undecided(name, "what it answers without '" argument_of[name, i] "'")
    else if (wanted != "not called")
        write_call(name, name ": " argument_name[name, i] " = NULL", wanted, said)
}

# Each struct is without its version in its turn, and has one of a later header.
function write_version_calls(name, i,    said, type)
{
    type = pointed_at(name, i)
    if (returned[name] != "tl_status" || !(type in has_version))
        return
    said[i] = "zeroes"
    write_call(name, name ": " argument_name[name, i] " = zeroes", "is_the_callers(got)", said)
    said[i] = "&(" type "){.version = " toupper(type) "_VERSION + 1}"
    write_call(name, name ": " argument_name[name, i] " = later", "is_the_callers(got)", said)
}

# Of a function without pointers: numbers that mean nothing.
function write_number_call(name,    i, said)
{
    for (i = 1; i <= argument_count[name]; i++)
        said[i] = "999"
    if (name in answers)
        write_call(name, name, answers[name], said)
    else
        undecided(name, "what it answers, since it has no pointer that can be NULL")
}

# A line "FUNCTION: ARGUMENT = VALUE; ..." of the table.
function write_mistake(line,    i, j, name, part, count, said, one, wanted)
{
    name = cut(line, ":")
    count = split(behind, part, "; ")
    if (!(name in returned)) {
        needless(name)
        return
    }
    for (i = 1; i <= count; i++) {
        one = cut(part[i], " = ")
        for (j = argument_count[name]; j > 0 && argument_name[name, j] != one; j--)
            ;
        said[j] = behind
        if (j == 0)
            undecided(name, "of which argument '" one "' is")
    }
    wanted = mistakes[line]
    if (wanted == "")
        wanted = returned[name] == "void" ? "anything" : "is_the_callers(got)"
    write_call(name, line, wanted, said)
}

function write_calls(name,    i)
{
    print "/* " name ": " pointer_count[name] " pointers */"
    used[name] = 1
    if (pointer_count[name] == 0)
        write_number_call(name)
    for (i = 1; i <= argument_count[name]; i++) {
        if (is_pointer(argument_type[name, i]))
            write_null_call(name, i)
        write_version_calls(name, i)
    }
}

END {
    read_table()
    read_header()
    for (i = 1; i <= function_count; i++)
        write_calls(functions[i])
    for (i = 1; i <= mistake_count; i++)
        write_mistake(order[i])
    for (subject in subjects)
        if (!(subject in used))
            needless(subject)
    print "static const struct entry table[] = {\n" rows "};"
}
