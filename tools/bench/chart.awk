# Throughput by callers as an SVG: both axes by powers, a line a contestant.
function field(name,   at, text) {
    at = index($0, "\"" name "\":")
    text = substr($0, at + length(name) + 3)
    sub(/[,}].*/, "", text)
    gsub(/"/, "", text)
    return text
}
function median(key,   i, j, t, n, s) {
    n = split(list[key], s, " ")
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && s[j - 1] + 0 > s[j] + 0; j--) { t = s[j]; s[j] = s[j - 1]; s[j - 1] = t }
    return s[int((n + 1) / 2)] + 0
}
function x(n) { return 70 + 560 * log(n) / log(1024) }
function y(v) { return 400 - 350 * (log(v) / log(10) - 2) / 3.2 }
field("part") == "throughput" {
    who = field("contestant"); n = field("callers")
    if (!(who in seen)) { seen[who] = 1; names[++count] = who }
    if (!((who, n) in list)) points[who] = points[who] " " n
    list[who, n] = list[who, n] " " field("per_second")
}
END {
    split("#b3001b #1f6feb #8250df #2da44e #bf8700 #57606a #0a7ea4 #d4488e", colour, " ")
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 460\" font-family=\"sans-serif\" font-size=\"12\">"
    print "<rect width=\"800\" height=\"460\" fill=\"white\"/>"
    print "<text x=\"70\" y=\"24\" font-size=\"15\">lock + unlock cycles a second, by callers (all durable)</text>"
    for (v = 100; v <= 100000; v *= 10)
        printf "<line x1=\"70\" x2=\"630\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"62\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n", y(v), y(v), y(v) + 4, v
    m = split("1 8 64 256 1024", ticks, " ")
    for (i = 1; i <= m; i++)
        printf "<text x=\"%.1f\" y=\"420\" text-anchor=\"middle\">%d</text>\n", x(ticks[i]), ticks[i]
    for (i = 1; i <= count; i++) {
        who = names[i]; path = ""
        n = split(points[who], at, " ")
        for (j = 1; j <= n; j++) {
            v = median(who SUBSEP at[j])
            if (v < 100) v = 100
            path = path sprintf("%s%.1f,%.1f", j == 1 ? "" : " ", x(at[j]), y(v))
            last = y(v)
        }
        printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" points=\"%s\"/>\n", colour[i], who == "tradelock" ? 3 : 1.5, path
        printf "<rect x=\"650\" y=\"%d\" width=\"12\" height=\"4\" fill=\"%s\"/><text x=\"668\" y=\"%d\">%s</text>\n", 52 + 18 * i, colour[i], 58 + 18 * i, who
    }
    print "</svg>"
}
