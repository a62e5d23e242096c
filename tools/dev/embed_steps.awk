# The half of embed_sql that knows statements: those of sql/query, and those that are made from the
# files of sql/step, each of which describes a step (sql/README.md).  Needs fail() and trim() of embed_sql.

function has(words, word)
{
    return index(", " words ", ", ", " word ", ") > 0
}

# ------------------------------------------------------------------------------ statements --

# A statement with named parameters; rules: the safety rules that it does without, "" of most.
function add_statement(path, name, text, from_step, rules)
{
    text = trim(text)
    sub(/;$/, "", text)
    text = trim(text)
    if (text == "")
        fail(path, "no statement")
    if (rules == "" && name in named_at)
        fail(path, "a second statement named " name)
    statement_count++
    if (rules == "")
        named_at[name] = statement_count
    statement_name[statement_count] = name
    statement_path[statement_count] = path
    statement_text[statement_count] = text
    statement_rules[statement_count] = rules
    of_step[statement_count] = from_step
}

# The server does not run a subquery of a query that was just killed, and takes NULL for it, or
# FALSE for an EXISTS.  A join, and a function, end with an error.
function selects_subquery(text,    list)
{
    list = " " text
    gsub(/[ \n]+/, " ", list)
    if (list !~ /^ SELECT /)
        return 0
    sub(/ FROM .*/, "", list)
    return list ~ /\( ?SELECT | EXISTS \(/
}

function take_query(path, name, text)
{
    if (name !~ /_(columns|condition)$/) {
        if (selects_subquery(text))
            fail(path, "a subquery among what is selected; killed, it would say NULL: use a join")
        add_statement(path, name, text, 0, "")
        return
    }
    columns_text[name] = trim(text)
    if (columns_text[name] == "" || index(columns_text[name], "/*"))
        fail(path, "a list of columns or a condition, and nothing else")
}

function with_columns(path, text,    name, mark, at)
{
    while ((at = index(text, "/*include ")) > 0) {
        mark = substr(text, at)
        name = substr(mark, 11, index(mark, "*/") - 11)
        if (!(name in columns_text))
            fail(path, "no list of columns and no condition named \"" name "\"")
        text = substr(text, 1, at - 1) columns_text[name] substr(mark, index(mark, "*/") + 2)
    }
    return text
}

# The text with question marks for its names, but inside strings; mark_name gets the name of each.
function unnamed(path, text,    result, at, c, quoted, rest)
{
    result = ""
    quoted = 0
    while ((at = match(text, /[:?']/)) > 0) {
        c = substr(text, at, 1)
        rest = substr(text, at + 1)
        if (c == "'")
            quoted = !quoted
        else if (c == "?" && !quoted)
            fail(path, "a parameter has a name, and no question mark")
        if (c == ":" && !quoted && match(rest, /^[a-z][a-z0-9_]*/)) {
            mark_name[++mark_count] = substr(rest, 1, RLENGTH)
            result = result substr(text, 1, at - 1) "?"
            text = substr(rest, RLENGTH + 1)
        } else {
            result = result substr(text, 1, at)
            text = rest
        }
    }
    return result text
}

function number_names(from, to,    i)
{
    for (i = from; i <= to; i++)
        if (!(mark_name[i] in value_number)) {
            value_name[value_count] = mark_name[i]
            value_number[mark_name[i]] = value_count++
        }
}

# Statement i in its parts, and the values that it takes: first those outside the group of rows.
function resolve(i,    path, text, first, last, row_from, row_to, n)
{
    path = statement_path[i]
    text = with_columns(path, statement_text[i])
    first = index(text, "/*rows(*/")
    last = index(text, "/*)rows*/")
    split("", value_number)
    mark_count = value_count = 0
    head = row = tail = ""
    if (!first && !last) {
        all = unnamed(path, text)
        number_names(1, mark_count)
        outside_count = value_count
    } else {
        if (!first || last < first)
            fail(path, "a group of rows is /*rows(*/ ... /*)rows*/, once")
        head = unnamed(path, substr(text, 1, first - 1))
        row_from = mark_count + 1
        row = unnamed(path, substr(text, first + 9, last - first - 9))
        row_to = mark_count
        tail = unnamed(path, substr(text, last + 9))
        if (index(row tail, "/*rows(*/") || index(tail, "/*)rows*/"))
            fail(path, "a group of rows is /*rows(*/ ... /*)rows*/, once")
        if (trim(row) == "")
            fail(path, "the group of rows is empty")
        all = head row tail
        number_names(1, row_from - 1)
        number_names(row_to + 1, mark_count)
        outside_count = value_count
        for (n = row_from; n <= row_to; n++)
            if (mark_name[n] in value_number)
                fail(path, "\"" mark_name[n] "\" is in the group of rows and elsewhere")
        number_names(row_from, row_to)
    }
    for (n = 0; of_step[i] && n < value_count; n++)
        if (!(value_name[n] in like_column))
            fail(path, "\"" value_name[n] "\" is nothing that step_map.h knows")
}

# ----------------------------------------------------------------------- reading sql/step --

# The lines FIELD(NAME, COLUMN, ...) of core/store/step_map.h.
function take_fields(path,    line, got, part)
{
    while ((got = (getline line < path)) > 0)
        if (line ~ /^    FIELD\([a-z_]+, [a-z_]+, /) {
            split(line, part, /[(,]/)
            like_column[part[2]] = trim(part[3])
        }
    if (got < 0)
        fail(path, "cannot be read")
    close(path)
}

function check_words(path, words,    count, word, i)
{
    FORM_WORDS = "one row, both rows, alone, many, group, short, repeatable, with repeatables"
    count = split(words, word, /, /)
    for (i = 1; i <= count; i++) {
        sub(/^not /, "", word[i])
        if (!has(FORM_WORDS, word[i]))
            fail(path, "no word for a form: \"" word[i] "\"")
    }
}

# "form NAME: WORD, ...", with "; else STEP, ..." or "; then STEP", on top, and then the step.
function take_step(path, name, text,    count, lines, i, part, form)
{
    step_path[name] = path
    step_name[++step_count] = name
    step_body[name] = ""
    count = split(text, lines, "\n")
    for (i = 1; i <= count && (lines[i] ~ /^form / || lines[i] == ""); i++) {
        if (lines[i] == "")
            continue
        if (lines[i] !~ /^form [a-z][a-z0-9_]*: [a-z, ]+(; (else|then) [a-z_, ]+)?$/)
            fail(path, "no form: " lines[i])
        form = ++form_count
        split(substr(lines[i], 6), part, /: |; else |; then /)
        form_step[form] = name
        form_name[form] = part[1]
        form_words[form] = part[2]
        form_else[form] = lines[i] ~ /; else / ? part[3] : ""
        form_then[form] = lines[i] ~ /; then / ? part[3] : ""
        check_words(path, part[2])
        has_form[name] = 1
    }
    for (; i <= count; i++)
        step_body[name] = step_body[name] lines[i] "\n"
    if (trim(step_body[name]) == "")
        fail(path, "no statement")
}

# Whether a line with this note stands in a form of these words; what the note says otherwise goes
# to the globals short_value and carried.
function is_kept(path, note, words, rules,    count, part, i, at)
{
    short_value = carried = ""
    at = match(note, /(^|, )short: /)
    if (at) {
        if (has(words, "short"))
            short_value = substr(note, at + RLENGTH)
        note = substr(note, 1, at - 1)
    }
    count = split(note, part, /, /)
    for (i = 1; i <= count; i++) {
        if (part[i] ~ /^rule (fence|token)$/) {
            if (has(rules, substr(part[i], 6)))
                return 0
            rules_seen = 1
        } else if (part[i] ~ /^carries [a-z_]+$/) {
            carried = substr(part[i], 9)
        } else {
            check_words(path, part[i])
            if (part[i] ~ /^not / ? has(words, substr(part[i], 5)) : !has(words, part[i]))
                return 0
        }
    }
    return 1
}

# The lines of a step that a form of these words has: in `kept`, and what a line carries in `carry`.
# A deeper line belongs to the one above it.  What changes the retry row is for both rows only.
function keep_lines(name, words, rules,    count, lines, i, line, note, at, skipping, kept_count)
{
    count = split(step_body[name], lines, "\n")
    kept_count = skipping = 0
    for (i = 1; i <= count; i++) {
        line = lines[i]
        if (line == "" || (skipping && line ~ /^     /))
            continue
        note = ""
        if ((at = match(line, / +-- /)) > 0) {
            note = substr(line, at + RLENGTH)
            line = substr(line, 1, at - 1)
        }
        skipping = !is_kept(step_path[name], note, words, rules) \
            || (line ~ /^(    |SET )r\./ && !has(words, "both rows"))
        if (skipping) {
            # Only a line that others belong to takes them along.
            skipping = line !~ /^     /
            if (line !~ /^WHERE /)
                continue
            line = "WHERE TRUE"
        }
        if (short_value != "" && match(line, / = /))
            line = substr(line, 1, RSTART + 2) short_value (line ~ /,$/ ? "," : "")
        kept[++kept_count] = line
        carry[kept_count] = carried
    }
    return kept_count
}

# ------------------------------------------------------------------------------ UPDATE, SELECT --

# A list of values that the table is joined with; each name in `text` becomes a column of it.
function list_of_values(text, words,    names, i, columns, marks)
{
    names = ":cust_no :serial_no :op_code" (has(words, "both rows") ? " :retry_op " : " ") text
    split("", value_number)
    mark_count = value_count = 0
    unnamed("", names)
    number_names(1, mark_count)
    columns = marks = ""
    for (i = 0; i < value_count; i++) {
        columns = columns (i ? "," (i % 4 == 3 ? "\n        " : " ") : "") \
            (like_column[value_name[i]] == value_name[i] ? "" : like_column[value_name[i]] " AS ") \
            value_name[i]
        marks = marks (i ? ", " : "") ":" value_name[i]
    }
    return "(SELECT " columns "\n    FROM trade_lock WHERE FALSE\n    UNION ALL VALUES /*rows(*/(" \
        marks ")/*)rows*/) j\nSTRAIGHT_JOIN trade_lock s FORCE INDEX (PRIMARY) ON" \
        " s.cust_no = j.cust_no\n    AND s.serial_no = j.serial_no AND s.op_code = j.op_code\n" \
        (has(words, "both rows") ? "STRAIGHT_JOIN trade_lock r FORCE INDEX (PRIMARY) ON" \
        " r.cust_no = s.cust_no\n    AND r.serial_no = s.serial_no AND r.op_code = j.retry_op\n" \
        : "")
}

# Each name as a column of the list j.
function of_list(text,    result, at, c, quoted)
{
    result = ""
    quoted = 0
    while ((at = match(text, /[:']/)) > 0) {
        c = substr(text, at, 1)
        if (c == "'")
            quoted = !quoted
        result = result substr(text, 1, at - 1) \
            (c == ":" && !quoted && substr(text, at + 1) ~ /^[a-z]/ ? "j." : c)
        text = substr(text, at + 1)
    }
    return result text
}

function build_change(name, words, rules,    count, i, text, at, verb, source, key, rest)
{
    count = keep_lines(name, words, rules)
    text = ""
    for (i = 1; i <= count; i++)
        text = text kept[i] "\n"
    gsub(/,\nWHERE/, "\nWHERE", text)
    at = match(text, /(UPDATE|FROM) s\n/)
    if (!at || at + RLENGTH - 1 > index(text, "\nWHERE "))
        return text
    verb = substr(text, at, RLENGTH - 2)
    rest = substr(text, at + RLENGTH)
    text = substr(text, 1, at - 1)
    if (has(words, "many"))
        return of_list(text) verb list_of_values(text rest, words) of_list(rest)
    if (has(words, "both rows"))
        source = "trade_lock s\nSTRAIGHT_JOIN trade_lock r ON r.cust_no = s.cust_no" \
            " AND r.serial_no = s.serial_no\n    AND r.op_code = :retry_op\n"
    else
        source = "trade_lock s" (verb == "UPDATE " ? " FORCE INDEX (PRIMARY)" : "") "\n"
    key = "s.cust_no = :cust_no AND s.serial_no = :serial_no AND s.op_code = :op_code\n    AND "
    text = text verb source rest
    at = index(text, "\nWHERE ")
    return substr(text, 1, at + 6) key substr(text, at + 7)
}

# ------------------------------------------------------------------------------------- INSERT --

# The items "COLUMN = VALUE" of the kept lines from..count, up to one that begins with `end`: in
# item_column, item_value and item_carry from `first` on.  Sets next_line.
function take_items(path, from, count, end, first,    i, line, n)
{
    n = first - 1
    for (i = from; i <= count && index(kept[i], end) != 1; i++) {
        line = kept[i]
        if (line ~ /^     /) {
            item_value[n] = item_value[n] " " trim(line)
            continue
        }
        sub(/^(SET|   ) (s\.)?/, "", line)
        if (line !~ /^[a-z_]+ = /)
            fail(path, "no \"COLUMN = VALUE\": " kept[i])
        item_column[++n] = substr(line, 1, index(line, " = ") - 1)
        item_value[n] = substr(line, index(line, " = ") + 3)
        item_carry[n] = carry[i]
    }
    next_line = i
    for (i = first; i <= n; i++)
        sub(/,$/, "", item_value[i])
    return n
}

function replace(text, what, by,    result, at)
{
    result = ""
    while ((at = index(text, what)) > 0) {
        result = result substr(text, 1, at - 1) by
        text = substr(text, at + length(what))
    }
    return result text
}

# What is said of the row s, said of the row that an INSERT met; what the INSERT brings along, by
# the column that it is in.
function of_met_row(text, inserted,    i, name)
{
    for (i = 1; i <= inserted; i++)
        if (index(item_value[i], ":") && item_value[i] !~ /^:/)
            text = replace(text, item_value[i], "VALUES(" item_column[i] ")")
    for (i = 1; i <= inserted; i++) {
        if (item_value[i] ~ /^:[a-z_]+$/)
            text = replace_name(text, substr(item_value[i], 2), item_column[i])
        if (item_carry[i] != "")
            text = replace_name(text, item_carry[i], item_column[i])
    }
    return substr(replace(replace(" " text, " s.", " "), "(s.", "("), 2)
}

function replace_name(text, name, column,    result, at, rest)
{
    result = ""
    while ((at = index(text, ":" name)) > 0) {
        rest = substr(text, at + 1 + length(name))
        result = result substr(text, 1, at - 1) \
            (rest ~ /^[a-z0-9_]/ ? ":" name : "VALUES(" column ")")
        text = rest
    }
    return result text
}

# What the steps `else` make of the row that an INSERT met: the token first, since it tells the
# later assignments, and the caller, whether the row was taken.
function build_else(path, others, words, rules, inserted,
    count, other, k, n, i, from, to, c, rule, column, columns, column_name, value, word, text)
{
    count = split(others, other, /, /)
    columns = 0
    rule = ""
    for (k = 1; k <= count; k++) {
        if (!(other[k] in step_body))
            fail(path, "no step named \"" other[k] "\"")
        n = keep_lines(other[k], "one row, " words, rules)
        from = inserted + 1
        to = take_items(step_path[other[k]], 2, n, "WHERE ", from)
        text = ""
        for (i = next_line; i <= n; i++)
            text = text "\n    " kept[i]
        text = of_met_row(substr(trim(text), 7), inserted)
        for (i = from; i <= to; i++) {
            c = item_column[i]
            if (c == "token")
                continue
            if (c == "step")
                word[k] = item_value[i]
            if (!(c in column)) {
                column[c] = 1
                column_name[++columns] = c
            }
            value[k, c] = of_met_row(item_value[i], inserted)
        }
        if (!(k in word))
            fail(step_path[other[k]], "a step that changes the row that is met says s.step")
        if (!has(words, "alone"))
            text = "VALUES(step) = " word[k] " AND " text
        rule = rule (k > 1 ? "\n        OR " : "") (count > 1 ? "(" text ")" : text)
    }
    text = "ON DUPLICATE KEY UPDATE\n    token = IF(" rule ",\n        VALUES(token), token)"
    # Where there are several the step is assigned first of the rest, and tells which it was.
    if (count > 1)
        text = text ",\n    step = IF(token = VALUES(token), VALUES(step), step)"
    for (i = 1; i <= columns; i++) {
        c = column_name[i]
        if (c == "step" && count > 1)
            continue
        text = text ",\n    " c " = IF(token = VALUES(token), " \
            one_of(count, c, value, word) ", " c ")"
    }
    return text "\n"
}

# What each of the steps assigns to a column; where they differ, by the step that it is.
function one_of(count, c, value, word,    k, mine, result)
{
    for (k = 1; k <= count; k++) {
        mine = c
        if ((k SUBSEP c) in value)
            mine = value[k, c]
        if (k == 1)
            result = mine
        else if (mine != result)
            result = "IF(step = " word[k] ", " mine ", " result ")"
    }
    return result
}

function build_insert(name, words, others, rules,    count, items, i, columns, values, returning)
{
    count = keep_lines(name, words, rules)
    items = take_items(step_path[name], 2, count, "RETURNING ", 1)
    returning = next_line <= count ? kept[next_line] "\n" : ""
    columns = values = ""
    for (i = 1; i <= items; i++) {
        columns = columns (i > 1 ? "," (i % 8 == 0 ? "\n    " : " ") : "") item_column[i]
        values = values (i > 1 ? "," (length(item_value[i]) > 20 || i % 8 == 0 ? "\n    " : " ") \
            : "") item_value[i]
    }
    return "INSERT INTO trade_lock (" columns ")\nVALUES (" values ")\n" \
        (others == "" ? "" : build_else(step_path[name], others, words, rules, items)) returning
}

# ---------------------------------------------------------------------------------- all forms --

# Two steps in one request and one commit.  The second one does nothing where the first did nothing.
# An error undoes both; some pass the handler by, so that the library rolls back after any.
function build_block(form, rules,    name)
{
    name = form_then[form]
    if (!(name in step_body))
        fail(step_path[form_step[form]], "no step named \"" name "\"")
    return "BEGIN NOT ATOMIC\n" \
        "    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;\n" \
        "    START TRANSACTION;\n" build_change(form_step[form], form_words[form], rules) ";\n" \
        build_change(name, form_words[form], rules) ";\n    COMMIT;\nEND"
}

function build(form, rules)
{
    if (form_then[form] != "")
        return build_block(form, rules)
    if (step_body[form_step[form]] ~ /^INSERT\n/)
        return build_insert(form_step[form], form_words[form], form_else[form], rules)
    return build_change(form_step[form], form_words[form], rules)
}

# A step without a form, which no other one names, is one statement, of its own name.
function add_default_forms(    i, k, count, other, used, name)
{
    for (i = 1; i <= form_count; i++) {
        count = split(form_else[i], other, /, /)
        for (k = 1; k <= count; k++)
            used[other[k]] = 1
    }
    for (i = 1; i <= step_count; i++) {
        name = step_name[i]
        if (name in has_form || name in used)
            continue
        form_step[++form_count] = name
        form_name[form_count] = name
        form_words[form_count] = "one row, alone"
        form_else[form_count] = form_then[form_count] = ""
    }
}

function build_steps(    form, rule, path, text)
{
    add_default_forms()
    for (form = 1; form <= form_count; form++) {
        path = step_path[form_step[form]]
        rules_seen = 0
        text = build(form, "")
        add_statement(path, form_name[form], text, 1, "")
        if (!rules_seen)
            continue
        has_rules[form_name[form]] = 1
        for (rule = 1; rule <= 3; rule++)
            add_statement(path, form_name[form], build(form, rule_set(rule)), 1, rule_set(rule))
    }
}

# 1: without fence, 2: without token, 3: without both; as store_mutated() counts them.
function rule_set(number)
{
    return number == 1 ? "fence" : number == 2 ? "token" : "fence, token"
}

# ------------------------------------------------------------------------------------ writing --

function write_statement_types()
{
    print "/* A statement.  One that can carry many rows is head, row, \",\", row, ..., tail," \
        > header
    print " * and text is that with one row; head, row and tail are NULL in others. */" > header
    print "struct sql_text {\n    const char *name;\n    const char *text;" > header
    print "    const char *head, *row, *tail;" > header
    print "    int calls; /* a procedure, which may begin a transaction */" > header
    print "    int block; /* statements, some of which may have been done when an error comes */" \
        > header
    print "    /* The values that it takes, those outside the group of rows first; and which of" \
        > header
    print "     * them each question mark is.  marks NULL: each its own. */" > header
    print "    unsigned values, outside, mark_count;\n    const unsigned char *marks;" > header
    print "    const unsigned char *fields; /* of a step's: the enum step_field of each */" > header
    print "    /* In builds with TL_TEST_HOOKS, of a step's: without the rule fence, without the" \
        > header
    print "     * rule token, and without both; else NULL. */" > header
    print "    const struct sql_text *const *without;\n};\n" > header
}

function write_names(what, name, from, to,    n)
{
    if (from == to)
        return
    printf "struct sql_%s_%s {\n    db_value ", name, what > header
    for (n = from; n < to; n++)
        printf "%s%s", (n == from ? "" : ", "), value_name[n] > header
    printf ";\n};\n" > header
    printf "enum { sql_%s_%s_count = %d };\n", name, what, to - from > header
}

function c_name(i)
{
    if (statement_rules[i] == "")
        return "sql_" statement_name[i]
    return statement_name[i] "_without_" (statement_rules[i] == "fence, token" ? "both" \
        : statement_rules[i])
}

function write_statement(i,    n, name, rules)
{
    resolve(i)
    name = statement_name[i]
    rules = statement_rules[i]
    if (rules == "") {
        printf "extern const struct sql_text sql_%s;\n", name > header
        if (!of_step[i]) {
            write_names("values", name, 0, outside_count)
            write_names("row", name, outside_count, value_count)
        }
    }
    printf "\n/* %s%s */\n", short_path(statement_path[i]), rules == "" ? "" \
        : ", without " rules > source
    if (rules != "")
        print "#ifdef TL_TEST_HOOKS" > source
    if (mark_count > 0) {
        printf "static const unsigned char %s_marks[] = {", c_name(i) > source
        for (n = 1; n <= mark_count; n++)
            printf "%s%d", (n == 1 ? "" : ", "), value_number[mark_name[n]] > source
        print "};" > source
    }
    if (of_step[i]) {
        printf "static const unsigned char %s_fields[] = {\n", c_name(i) > source
        for (n = 0; n < value_count; n++)
            printf "    STEP_FIELD_%s,\n", value_name[n] > source
        print "};" > source
    }
    if (rules == "" && name in has_rules)
        printf "#ifdef TL_TEST_HOOKS\nextern const struct sql_text *const %s_without[];\n#endif\n",
            name > source
    printf "%sconst struct sql_text %s = {\n    .name = \"%s\",\n    .text =\n%s,\n", \
        rules == "" ? "" : "static ", c_name(i), name, quote(all) > source
    if (row != "")
        printf "    .head =\n%s,\n    .row =\n%s,\n    .tail =\n%s,\n", quote(head), quote(row), \
            quote(tail) > source
    if (all ~ /^CALL /)
        print "    .calls = 1," > source
    if (all ~ /^BEGIN NOT ATOMIC\n/)
        print "    .block = 1," > source
    if (mark_count > 0)
        printf "    .values = %d, .outside = %d, .mark_count = %d,\n    .marks = %s_marks,\n",
            value_count, outside_count, mark_count, c_name(i) > source
    if (of_step[i])
        printf "    .fields = %s_fields,\n", c_name(i) > source
    if (rules == "" && name in has_rules)
        printf "#ifdef TL_TEST_HOOKS\n    .without = %s_without,\n#endif\n", name > source
    print "};" > source
    if (rules == "fence, token") {
        printf "const struct sql_text *const %s_without[] = {\n    &%s_without_fence,", name, name \
            > source
        printf " &%s_without_token, &%s_without_both};\n", name, name > source
    }
    if (rules != "")
        print "#endif" > source
}

function short_path(path)
{
    return match(path, /(query|step)\/[^\/]*$/) ? "sql/" substr(path, RSTART) : path
}

function write_statements(    i)
{
    for (i = 1; i <= statement_count; i++)
        write_statement(i)
    print "\nconst struct sql_text *const sql_texts[] = {" > source
    for (i = 1; i <= statement_count; i++)
        if (statement_rules[i] == "")
            printf "    &sql_%s,\n", statement_name[i] > source
    print "    NULL,\n};" > source
    print "const size_t sql_texts_count = sizeof sql_texts / sizeof sql_texts[0] - 1;" > source
}
