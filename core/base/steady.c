/* Computes whether another clock runs steadily.  Touches only what it is given. */
#include "base/steady.h"

static int64_t drift_us(const steady *self, int64_t now_us)
{
    return now_us > self->at_us ? (now_us - self->at_us) / STEADY_DRIFT : 0;
}

int64_t steady_off_us(const steady *self, const steady_look *look, int64_t margin_us)
{
    const int64_t least_us = look->other_us - look->after_us;
    const int64_t most_us = look->other_us - look->before_us;
    int64_t allowed_us;

    if (!self->known)
        return 0;
    allowed_us = drift_us(self, look->after_us) + margin_us;
    if (least_us > self->most_us + allowed_us || most_us < self->least_us - allowed_us)
        return least_us - self->most_us;
    return 0;
}

/* Keeps what both intervals allow.  If they do not meet, it keeps the end that is nearer to the
 * look: a clock that was set by less than the margin is followed no faster than one that drifts. */
void steady_learn(steady *self, const steady_look *look)
{
    const int64_t least_us = look->other_us - look->after_us;
    const int64_t most_us = look->other_us - look->before_us;
    const int64_t drifted_us = drift_us(self, look->after_us);
    int64_t low_us = self->least_us - drifted_us, high_us = self->most_us + drifted_us;

    if (!self->known) {
        low_us = least_us;
        high_us = most_us;
    } else if (least_us > high_us) {
        low_us = high_us;
    } else if (most_us < low_us) {
        high_us = low_us;
    } else {
        low_us = least_us > low_us ? least_us : low_us;
        high_us = most_us < high_us ? most_us : high_us;
    }
    self->known = 1;
    self->least_us = low_us;
    self->most_us = high_us;
    self->at_us = look->after_us;
}

int steady_now(const steady *self, int64_t now_us, int64_t margin_us, int64_t *least_us,
               int64_t *most_us)
{
    const int64_t allowed_us = drift_us(self, now_us) + margin_us;

    if (!self->known)
        return 0;
    *least_us = now_us + self->least_us - allowed_us;
    *most_us = now_us + self->most_us + allowed_us;
    return 1;
}
