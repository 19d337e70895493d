/* What cpu_passes.h does with many rows: the values with a rank are found without sorting. A bound between them is built bit
   by bit, from the highest, in whole numbers that are ordered as the floating ones are; the rows below it are counted each time,
   and it is good as soon as they are as many as the rank says. Nothing that a client sends can make this take more turns than
   there are bits. */

typedef __typeof__(_Generic((T)0, float: (int32_t)0, double: (int64_t)0)) NAME(whole);
typedef __typeof__(_Generic((T)0, float: (uint32_t)0, double: (uint64_t)0)) NAME(bits);
typedef NAME(whole) NAME(mask) __attribute__((vector_size(sizeof(V)), may_alias)); /* all bits or none; or votes */
#define MASK NAME(mask)
#define CHOOSE(mask, a, b) (V)(((mask) & (MASK)(a)) | (~(mask) & (MASK)(b)))
#define ALL(number) ((MASK){0} + (NAME(whole))(number))
#ifndef ANY /* whether a lane is set */
#define ANY(mask) NAME(any)(mask)
#endif
#ifndef ADD_UP_TO /* to the sum the votes of the lanes where a <= b */
#define ADD_UP_TO(sum, a, b, votes) ((sum) + ((votes) & (MASK)((a) <= (b))))
#endif
#ifndef LEAST_BEYOND /* the lesser of `least` and x where x > bound, or, `with` it, x >= bound */
#define LEAST_BEYOND(least, x, bound, with)                                                                            \
    VMIN(CHOOSE((MASK)((with) ? (x) >= (bound) : (x) > (bound)), x, least), least)
#endif

/* Whether a lane is set. */
static inline int NAME(any)(MASK mask)
{
    uint64_t words[sizeof mask / 8], any = 0;
    memcpy(words, &mask, sizeof mask);
    for (size_t k = 0; k < sizeof mask / 8; k++) any |= words[k];
    return any != 0;
}

/* The values next to a rank, 0 <= rank < n, of n vectors x, lane by lane: *high has it, and *low, if that is asked for, the rank
   before. */
static void NAME(select)(const V *x, ptrdiff_t n, ptrdiff_t rank, V *low, V *high)
{
    enum { BITS = 8 * sizeof(T) };
    const NAME(bits) top = (NAME(bits))1 << (BITS - 1);
    const MASK wanted = ALL(rank), one = ALL(1);
    MASK key = ALL(top), exact = ALL(0);
#define NUMBER(key) ((V)((key) ^ (((key) >> (BITS - 1)) & ALL(top - 1))))
    for (int bit = BITS - 1; bit >= 0; bit--) {
        const MASK trial = key ^ ALL((NAME(bits))1 << bit);
        const V bound = NUMBER(trial);
        MASK sum[4] = {ALL(0), ALL(0), ALL(0), ALL(0)};
        ptrdiff_t i = 0;
        for (; i + 4 <= n; i += 4)
            _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++) sum[k] = ADD_UP_TO(sum[k], x[i + k], bound, one);
        for (; i < n; i++) sum[0] = ADD_UP_TO(sum[0], x[i], bound, one);
        const MASK below = sum[0] + sum[1] + (sum[2] + sum[3]), within = below <= wanted;
        key = (within & trial) | (~within & key);
        exact |= below == wanted;
        if (!ANY(~exact)) break;
    }
    const V bound = NUMBER(key);
    V under = SPLAT(-(T)INFINITY), over = SPLAT((T)INFINITY);
    for (ptrdiff_t i = 0; i < n; i++) {
        const MASK beyond = (MASK)(x[i] > bound);
        over = VMIN(CHOOSE(beyond, x[i], over), over);
        under = VMAX(CHOOSE(beyond, under, x[i]), under);
    }
    *high = over;
    if (low != NULL) *low = CHOOSE(exact, under, over); /* else rows that are equal have both ranks */
#undef NUMBER
}

/* The median of n vectors; of an even number the midpoint. */
static V NAME(select_median)(const V *x, ptrdiff_t n)
{
    const V half = SPLAT((T)0.5);
    V low, high;
    NAME(select)(x, n, n / 2, &low, &high);
    return n % 2 ? high : (V)(low * half + high * half);
}

/* The mean of the sorted vectors lo, ..., hi-1. Each is divided first, so that the sum does not overflow; the mean lies
   between the first and the last of them, whatever the rounding. */
static V NAME(select_mean)(const V *x, ptrdiff_t n, ptrdiff_t lo, ptrdiff_t hi)
{
    const V share = SPLAT((T)1 / (T)(hi - lo));
    MASK on_low = ALL(-lo), on_high = ALL(hi);
    V low, high, sum[4] = {SPLAT((T)0), SPLAT((T)0), SPLAT((T)0), SPLAT((T)0)};
    NAME(select)(x, n, lo, NULL, &low);
    NAME(select)(x, n, hi - 1, NULL, &high);
    for (ptrdiff_t i = 0; i < n; i++) {
        const MASK beyond = (MASK)(x[i] > low), before = (MASK)(x[i] < high);
        on_low = on_low + ALL(1) + beyond; /* a mask is -1 */
        on_high = on_high + before;
        sum[i % 4] = FMA(CHOOSE(beyond & before, x[i], SPLAT((T)0)), share, sum[i % 4]);
    }
    const V ends = low * (__builtin_convertvector(on_low, V) * share) + high * (__builtin_convertvector(on_high, V) * share);
    const V mean = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ends;
    return CHOOSE((MASK)(low == high), low, VMAX(VMIN(mean, high), low));
}

/* One vector of columns of trim, shares or spread, whose rows are copied into s. */
static void NAME(pick_columns)(const struct plan *p, const struct NAME(tile) *t, ptrdiff_t v, ptrdiff_t m, V *s, int median,
                               ptrdiff_t columns, V *counts)
{
    for (ptrdiff_t i = 0; i < m; i++) s[i] = *(const LOOSE *)(t->from[i] + v * VLEN);
    if (p->op == SHARES) {
        V low, high;
        NAME(select)(s, m, p->lo, NULL, &low);
        NAME(select)(s, m, p->hi - 1, NULL, &high);
        NAME(count)(t, v, columns, m, low, high, counts);
        return;
    }
    if (p->op == TRIM && !median) {
        t->centre[v] = NAME(select_mean)(s, m, p->lo, p->hi);
        return;
    }
    const V centre = t->centre[v] = NAME(select_median)(s, m);
    if (p->op == TRIM) return;
    for (ptrdiff_t i = 0; i < m; i++) {
        const V gap = s[i] - centre;
        s[i] = VMAX(gap, SPLAT((T)0) - gap);
    }
    t->mad[v] = NAME(select_median)(s, m);
}
