# Turns a public header, as header.awk reads it, into its part of the reference by task: each call with
# the first sentence of its comment.
#   -v include=tradelock/x.h

END {
    printf "\n## `<%s>`: %s\n", include, brief
    at = ""
    separate = "\n"
    for (i = 1; i <= count; i++) {
        if (calls_of[i] == "")
            continue
        if (task_of[i] != at)
            printf "\n### %s\n", toupper(substr(task_of[i], 1, 1)) substr(task_of[i], 2)
        if (task_of[i] != at)
            separate = "\n"
        at = task_of[i]
        sentence = first_sentence(text_of[i])
        gsub(/, /, "`, `", calls_of[i])
        printf "%s- `%s`%s\n", separate, calls_of[i], sentence == "" ? "" : ": " sentence
        separate = ""
    }
}
