/* Checks and bounds what callbacks write into a reply.  Touches the reply only. */
#include "memory.h"

#include <tradelock/layer.h>
#include <tradelock/workflow.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

tl_status tl_reply_ref(tl_reply *reply, const char *channel_ref)
{
    const char *at;
    size_t size;

    workflow_call_begins();
    if (reply == NULL || channel_ref == NULL)
        return tl_error_report(TL_INVALID, "a channel reference is missing");
    size = strlen(channel_ref);
    if (size > TL_REF_MAX)
        return tl_error_report(TL_INVALID, "a channel reference of %zu bytes is longer than %d",
                               size, TL_REF_MAX);
    for (at = channel_ref; *at != '\0'; at += tl_utf8_size(at))
        if (tl_utf8_size(at) == 0 || (unsigned char)*at < ' ' || *at == 0x7f)
            return tl_error_report(TL_INVALID,
                                   "byte %td of a channel reference (0x%02x) is no UTF-8, or "
                                   "a control character: it would not be stored as it is",
                                   at - channel_ref + 1, (unsigned)(unsigned char)*at);
    memcpy(reply->channel_ref, channel_ref, size + 1);
    return TL_OK;
}

tl_status tl_reply_result(tl_reply *reply, const void *result, size_t size)
{
    workflow_call_begins();
    if (reply == NULL || (result == NULL && size > 0))
        return tl_error_report(TL_INVALID, "a result is missing");
    if (size > TL_RESULT_MAX)
        return tl_error_report(TL_INVALID, "a result of %zu bytes is larger than %d", size,
                               TL_RESULT_MAX);
    if (size > 0)
        memcpy(reply->result, result, size);
    reply->result_size = size;
    return TL_OK;
}

tl_status tl_reply_retry_after(tl_reply *reply, int64_t after_ms)
{
    workflow_call_begins();
    if (reply == NULL || after_ms < 0)
        return tl_error_report(TL_INVALID, "the time after which to come again is negative, or "
                                           "there is no reply");
    reply->retry_after_ms = after_ms < TL_RETRY_AFTER_MAX_MS ? after_ms : TL_RETRY_AFTER_MAX_MS;
    return TL_OK;
}

/* Removes from the end a UTF-8 character that was cut in two. */
static void trim_character(char *text, size_t size)
{
    size_t start = size;

    while (start > 0 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start > 0 && (unsigned char)text[start - 1] >= 0xc0)
        text[start - 1] = '\0';
    else if (start < size)
        text[start] = '\0';
}

void tl_reply_remark(tl_reply *reply, const char *format, ...)
{
    va_list arguments;
    int wanted;

    if (reply == NULL || format == NULL)
        return;
    va_start(arguments, format);
    wanted = vsnprintf(reply->remark, sizeof reply->remark, format, arguments);
    va_end(arguments);
    if (wanted < 0)
        reply->remark[0] = '\0';
    else if ((size_t)wanted >= sizeof reply->remark)
        trim_character(reply->remark, sizeof reply->remark - 1);
}
