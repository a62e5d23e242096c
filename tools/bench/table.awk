# Medians and spread of tools/benchmark's measurements, and how far the ratios reach.
function field(name,   at, text) {
    at = index($0, "\"" name "\":")
    if (at == 0)
        return ""
    text = substr($0, at + length(name) + 3)
    sub(/[,}].*/, "", text)
    gsub(/"/, "", text)
    return text
}
# Sets low and high too.
function median(list, n,   i, j, t, sorted) {
    for (i = 1; i <= n; i++)
        sorted[i] = list[i]
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && sorted[j - 1] > sorted[j]; j--) {
            t = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = t
        }
    low = sorted[1]; high = sorted[n]
    return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}
function med(key, what,   i, list) {
    if (!(key in runs))
        return 0
    for (i = 1; i <= runs[key]; i++)
        list[i] = value[key, what, i]
    return median(list, runs[key])
}
# The lowest of the rounds; sets high too.
function lowest(key, what) {
    med(key, what)
    return low
}
# The median over the rounds of one number for what was done in that round.
function each(key, what,   i, list) {
    for (i = 1; i <= runs[key]; i++)
        list[i] = over(value[key, what, i], value[key, "done", i])
    return median(list, runs[key])
}
function share(key, what,   i, list) {
    for (i = 1; i <= runs[key]; i++)
        list[i] = 100 * value[key, what, i] / value[key, "seconds", i]
    return median(list, runs[key])
}
function part_of(key,   words) {
    split(key, words, "/")
    return words[1]
}
function who_of(key,   words) {
    split(key, words, "/")
    return words[2]
}
function callers_of(key,   words) {
    split(key, words, "/")
    return words[3]
}
# better: 1 when more is better, -1 when less is.
function reach(text, measured, wanted, least, better,   word) {
    if (measured <= 0)
        return
    word = (measured - wanted) * better >= 0 ? "reached" : \
        (measured - least) * better >= 0 ? "not below" : "MISSED"
    printf "  %-66s %6.2f %9.2f %9.2f  %s\n", text, wanted, least, measured, word
}
function over(a, b) { return a > 0 && b > 0 ? a / b : 0 }
function rate(key) { return med(key, "per_second") }

field("part") != "" && field("part") != "machine" {
    key = field("part") "/" field("contestant") "/" field("callers")
    if (field("part") ~ /^pool/)
        key = key "/" field("connections")
    if (!(key in runs))
        order[++keys] = key
    i = ++runs[key]
    rest = $0
    while (match(rest, /"[a-z0-9_]+":-?[0-9][-+0-9.e]*/)) {
        pair = substr(rest, RSTART + 1, RLENGTH - 1)
        rest = substr(rest, RSTART + RLENGTH)
        name = pair; sub(/".*/, "", name)
        number = pair; sub(/.*:/, "", number)
        value[key, name, i] = number + 0
    }
}

function cycles_table(   k, key, per, spread, head) {
    for (k = 1; k <= keys; k++) {
        key = order[k]
        if (part_of(key) ~ /^(pool.*|limit|.*in-turn|desk)$/)
            continue
        if (!head++)
            printf "\n%-13s %-15s %7s %5s %8s %15s %8s %8s %8s %6s %6s %6s %6s %7s %7s\n",
                "part", "contestant", "callers", "conns", "cycles/s", "spread", "p50 us",
                "p99 us", "p99.9", "stm/c", "com/c", "sync/c", "refu/c", "client", "server"
        per = rate(key); spread = sprintf("%d-%d", low, high)
        printf "%-13s %-15s %7d %5s %8d %15s %8d %8d %8d ", part_of(key), who_of(key),
            callers_of(key), who_of(key) ~ /^(tradelock|refusal|workflow|books|books-loop|retry-.*|redis)$/ ? \
            "" : med(key, "connections"), per, spread, med(key, "p50_us"),
            med(key, "p99_us"), med(key, "p999_us")
        if (who_of(key) == "redis")
            printf "%6s %6s %6s ", "", "", ""
        else
            printf "%6.2f %6.2f %6.2f ", each(key, "statements"), each(key, "commits"),
                each(key, "syncs")
        printf "%6.2f %6.0f%% %6.0f%%\n", each(key, "refused"), share(key, "client_cpu_s"),
            share(key, "server_cpu_s")
    }
}
function pool_lines(   k, key, head) {
    for (k = 1; k <= keys; k++) {
        key = order[k]
        if (part_of(key) !~ /^pool/)
            continue
        if (!head++)
            printf "\nhand-written, by size of its pool (cycles/s); the best one is measured\n"
        printf "  %-15s %5d callers %3d connections %8d\n", part_of(key), callers_of(key),
            med(key, "connections"), rate(key)
    }
    if (rate("limit/fsync/1") > 0)
        printf "\nwrite and fdatasync of 512 bytes, one after the other: %d/s, p50 %d us\n",
            rate("limit/fsync/1"), med("limit/fsync/1", "p50_us")
}
# One caller, by the rounds in which one process takes turns, if there are any.
function one_caller(text, turns, apart, aim, least,   together) {
    together = med(turns, "ratio")
    if (together <= 0) {
        reach(text, apart, aim, least, 1)
        return
    }
    reach(text, together, aim, least, 1)
    printf "    taking turns: %d and %d a second, %.2f - %.2f in %d rounds%s\n",
        med(turns, "tradelock_per_second"), med(turns, "handwritten_per_second"),
        lowest(turns, "ratio"), high, runs[turns],
        (apart > 0) ? sprintf("; each in rounds of its own: %.2f", apart) : ""
}
# Declared books against the same transactions by hand.
function books(part, callers) {
    return over(rate(part "/books/" callers), rate(part "/books-hand/" callers))
}
# The same from one thread with an event loop.
function loop(part, under_way) {
    return over(rate(part "-loop-" under_way "/books-loop/1"), rate(part "/books-hand/" under_way))
}
function reach_books() {
    one_caller("workflow with declared books, 1 caller, against hand-written",
        "books-in-turn/books-in-turn/1", books("books", 1), 1, 0.95)
    reach("the same, 16 callers", books("books", 16), 2, 1.4, 1)
    reach("the same, 64 callers", books("books", 64), 4, 2.8, 1)
    reach("the same, 256 callers", books("books", 256), 7, 4.5, 1)
    reach("the same, 64 callers, one hot account", books("books-hot", 64), 5, 3.8, 1)
    reach("the same, 256 callers, one hot account", books("books-hot", 256), 8, 6, 1)
    reach("the same, 64 callers, 5 % refused", books("books-refused", 64), 3, 2, 1)
    reach("an event loop, 16 under way, against 16 hand-written", loop("books", 16), 2, 1.4, 1)
    reach("the same, 64", loop("books", 64), 4, 2.8, 1)
    reach("the same, 256", loop("books", 256), 7, 4.5, 1)
    reach("the same, 64, one hot account", loop("books-hot", 64), 5, 3.8, 1)
    reach("the same, 256, one hot account", loop("books-hot", 256), 8, 6, 1)
    reach("the same, 64, 5 % refused", loop("books-refused", 64), 3, 2, 1)
    reach("retry lane, 8 workers' endings with books, against callbacks",
        over(rate("books-retry/retry-books/8"), rate("books-retry/retry-callbacks/8")), 3, 2, 1)
}
function reach_table(   best, select) {
    for (k = 1; k <= keys; k++)
        if (part_of(order[k]) ~ /^rows-/) {
            if (base == "")
                base = order[k]
            else
                most = order[k]
        }
    printf "\n%-68s %6s %9s %9s\n", "reach (ratios of medians; of one caller the median of ratios)", "reach", "not below", "measured"
    one_caller("1 caller, against hand-written writing the same rows", "in-turn/in-turn/1",
        over(rate("throughput/tradelock/1"), rate("throughput/handwritten/1")), 0.97, 0.95)
    reach("64 callers, against hand-written",
        over(rate("throughput/tradelock/64"), rate("throughput/handwritten/64")), 2.5, 1.8, 1)
    reach("256 callers, against hand-written",
        over(rate("throughput/tradelock/256"), rate("throughput/handwritten/256")), 4, 3, 1)
    reach("64 callers, against the article's flow",
        over(rate("throughput/tradelock/64"), rate("throughput/article/64")), 6, 3.5, 1)
    reach("256 callers, against Redis with fsync",
        over(rate("throughput/tradelock/256"), rate("throughput/redis/256")), 1, 0.6, 1)
    one_caller("workflow with business rows, 1 caller, against hand-written",
        "workflow-in-turn/workflow-in-turn/1",
        over(rate("workflow/workflow/1"), rate("workflow/workflow-hand/1")), 0.95, 0.9)
    reach("the same, 16 callers",
        over(rate("workflow/workflow/16"), rate("workflow/workflow-hand/16")), 0.95, 0.9, 1)
    reach_books()
    reach("64 callers, " substr(part_of(most), 6) " rows against " substr(part_of(base), 6),
        over(rate(most), rate(base)), 0.8, 0.7, 1)
    reach("64 callers beside 50 people at the desk, against nobody", med("desk/desk/64", "ratio"),
        0.97, 0.95, 1)
    if (("desk/desk/64" in runs))
        printf "    cores that desk and server use for them, without a service: %.3f\n",
            med("desk/desk/64", "cores")
    select = rate("refusals-8/select/64")
    if (rate("refusals-64/select/64") > select)
        select = rate("refusals-64/select/64")
    reach("refusals of one key to 64 callers, against 64 prepared SELECTs",
        over(rate("refusals/refusal/64"), select), 1, 0.9, 1)
    if (("refusals/refusal/64" in runs))
        printf "    rows written by the refusals: %d\n", med("refusals/refusal/64", "row_writes")
    reach("other keys' p99 while one ending is held open, against nobody",
        over(med("slow-held/tradelock/64", "p99_us"), med("slow/tradelock/64", "p99_us")),
        1.1, 1.3, -1)
    if (("slow-asked/tradelock/64" in runs))
        printf "    and while that key is asked for every 20 ms: %.2f\n",
            over(med("slow-asked/tradelock/64", "p99_us"), med("slow/tradelock/64", "p99_us"))
}
END {
    cycles_table()
    pool_lines()
    reach_table()
}
