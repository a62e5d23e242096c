# Medians and spread of tools/benchmark's measurements, and the ratios that matter.
function field(name,   at, text) {
    at = index($0, "\"" name "\":")
    if (at == 0)
        return ""
    text = substr($0, at + length(name) + 3)
    sub(/[,}].*/, "", text)
    gsub(/"/, "", text)
    return text
}
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
    for (i = 1; i <= runs[key]; i++)
        list[i] = value[key, what, i]
    return median(list, runs[key])
}
function rate(part, who, n) {
    return ((part "/" who "/" n) in runs) ? med(part "/" who "/" n, "per_second") : 0
}
function ratio(text, a, b, reach, least) {
    if (a > 0 && b > 0)
        printf "  %-62s %6.2f   %s (%s)\n", text, a / b, reach, least
}
{
    key = field("part") "/" field("contestant") "/" field("callers")
    if (!(key in runs))
        order[++keys] = key
    i = ++runs[key]
    n = split("per_second p50_us p99_us p999_us cycles refused statements fsyncs client_cpu_s server_cpu_s inserted updated connections seconds", names, " ")
    for (j = 1; j <= n; j++)
        value[key, names[j], i] = field(names[j]) + 0
}
END {
    printf "\n%-10s %-14s %7s %5s %9s %17s %8s %8s %8s %6s %6s %7s %7s\n", "part", "contestant",
        "callers", "conns", "cycles/s", "spread", "p50 us", "p99 us", "p99.9", "stm/c", "sync/c",
        "cli cpu", "srv cpu"
    for (k = 1; k <= keys; k++) {
        key = order[k]
        split(key, part, "/")
        per = med(key, "per_second"); spread = sprintf("%d-%d", low, high)
        done = med(key, "cycles") + med(key, "refused"); if (done < 1) done = 1
        # The counters run from before the warm-up; the cycles do not.
        scale = 1 + 0.3 / med(key, "seconds")
        printf "%-10s %-14s %7d %5d %9d %17s %8d %8d %8d %6.2f %6.2f %6.0f%% %6.0f%%\n",
            part[1], part[2], part[3], med(key, "connections"), per, spread,
            med(key, "p50_us"), med(key, "p99_us"), med(key, "p999_us"),
            med(key, "statements") / done / scale, med(key, "fsyncs") / done / scale,
            100 * med(key, "client_cpu_s") / med(key, "seconds"),
            100 * med(key, "server_cpu_s") / med(key, "seconds") / scale
    }
    printf "\nratios of medians                                                     here   reach (not below)\n"
    ratio("1 caller, against hand-written, same rows", rate("throughput", "tradelock", 1), rate("throughput", "handwritten", 1), "0.97", "0.95")
    ratio("64 callers, against hand-written", rate("throughput", "tradelock", 64), rate("throughput", "handwritten", 64), "2.5", "1.8")
    ratio("256 callers, against hand-written", rate("throughput", "tradelock", 256), rate("throughput", "handwritten", 256), "4", "3")
    ratio("64 callers, against the article's flow", rate("throughput", "tradelock", 64), rate("throughput", "article", 64), "6", "3.5")
    ratio("256 callers, against Redis with fsync", rate("throughput", "tradelock", 256), rate("throughput", "redis", 256), "1.0", "0.6")
    ratio("workflow with business rows, 1 caller, against hand-written", rate("workflow", "workflow", 1), rate("workflow", "workflow-hand", 1), "0.95", "0.9")
    ratio("workflow with business rows, 16 callers, against hand-written", rate("workflow", "workflow", 16), rate("workflow", "workflow-hand", 16), "0.95", "0.9")
    ratio("refusals of one key to 64 callers, against 64 prepared SELECTs", rate("refusals", "refusal", 64), rate("refusals", "select", 64), "1.0", "0.9")
    for (k = 1; k <= keys; k++)
        if (order[k] ~ /^rows-/) {
            split(order[k], part, "/")
            if (base == "") base = order[k]
            else ratio("64 callers, " part[1] " against " substr(base, 1, index(base, "/") - 1), med(order[k], "per_second"), med(base, "per_second"), "0.8", "0.7")
        }
    if (("slow/tradelock/64" in runs) && ("slow-held/tradelock/64" in runs))
        printf "  %-62s %6.2f   %s (%s)\n", "other keys' p99 while one key's ending is held, against nobody", med("slow-held/tradelock/64", "p99_us") / med("slow/tradelock/64", "p99_us"), "1.1", "1.3"
}
