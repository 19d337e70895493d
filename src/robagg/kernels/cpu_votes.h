/* What cpu_passes.h does where rows have votes: row i stands for votes[i] copies of itself, and a rank numbers the copies of a
   sorted column. Values are sorted without their votes; which of them has a rank is then found by counting the votes of
   the rows up to a middle one, as often as the positions that can have it must be halved. */

#define REAL(votes) __builtin_convertvector(votes, V)

/* The value with a rank, of n rows x whose sorted values are s; *reached: the votes up to it. */
static inline __attribute__((always_inline)) V NAME(pick)(const V *x, ptrdiff_t n, const V *s, const struct rank *rank,
                           const NAME(whole) *votes, V *room, MASK *reached)
{
    const MASK wanted = ALL(rank->number);
    ptrdiff_t half = 1;
    V found = s[rank->last];
    if (reached != NULL) *reached = ALL(0);
    const ptrdiff_t candidates = rank->last - rank->first + (reached != NULL); /* else the last is what is left */
    if (!candidates) return found;
    while (2 * half <= candidates) half *= 2;
    for (ptrdiff_t k = 0; k < 2 * half - 1; k++)
        room[k] = s[rank->first + k < rank->last ? rank->first + k : rank->last];
    for (; half; half /= 2) {
        const V middle = room[half - 1];
        MASK sum = ALL(0), other = ALL(0);
        ptrdiff_t i = 0;
        for (; i + 1 < n; i += 2) {
            sum = ADD_UP_TO(sum, x[i], middle, ALL(votes[i]));
            other = ADD_UP_TO(other, x[i + 1], middle, ALL(votes[i + 1]));
        }
        if (i < n) sum = ADD_UP_TO(sum, x[i], middle, ALL(votes[i]));
        sum = sum + other;
        const MASK beyond = sum <= wanted;
        found = CHOOSE(beyond, found, middle);
        if (reached != NULL) *reached = (beyond & *reached) | (~beyond & sum);
        for (ptrdiff_t k = 0; k + 1 < half; k++) room[k] = CHOOSE(beyond, room[half + k], room[k]);
    }
    return found;
}

/* The value with the low rank; where the high one is the next rank and another value's, the midpoint. */
static V NAME(pick_middle)(const V *x, ptrdiff_t n, const V *s, const struct plan *p,
                           const NAME(whole) *votes, V *room)
{
    if (p->low.number == p->high.number) return NAME(pick)(x, n, s, &p->low, votes, room, NULL);
    MASK reached;
    const V low = NAME(pick)(x, n, s, &p->low, votes, room, &reached);
    const MASK apart = reached <= ALL(p->high.number);
    int any = 0;
    for (int k = 0; k < VLEN; k++) any |= apart[k] != 0;
    if (!any) return low;
    V high = SPLAT((T)INFINITY);
    for (ptrdiff_t i = 0; i < n; i++) high = VMIN(CHOOSE((MASK)(x[i] > low) & ALL(-(votes[i] > 0)), x[i], high), high);
    return CHOOSE(apart, low * SPLAT((T)0.5) + high * SPLAT((T)0.5), low);
}

/* The mean of the copies in a range of ranks; it lies between its bounds, whatever the rounding. Copies beyond a bound count
   as if they lay on it, and are taken away again; shares of all votes keep the sums in range. */
static V NAME(pick_mean)(const V *x, ptrdiff_t n, const V *s, const struct plan *p, const NAME(whole) *votes, V *room)
{
    const V low = NAME(pick)(x, n, s, &p->low, votes, room, NULL), high = NAME(pick)(x, n, s, &p->high, votes, room, NULL);
    const double all = (double)p->total, lo = (double)p->low.number, hi = (double)p->high.number + 1;
    V sum = low * SPLAT((T)(-lo / all)) + high * SPLAT((T)((hi - all) / all));
    for (ptrdiff_t i = 0; i < n; i++)
        sum = FMA(VMAX(VMIN(x[i], high), low), SPLAT((T)((double)votes[i] / all)), sum);
    return VMAX(VMIN(sum * SPLAT((T)(all / (hi - lo))), high), low);
}

/* Each row's share of a range of ranks, of the first `columns` columns, added to the counts (n): rows on one bound share
   it by their votes. */
static void NAME(count_votes)(const V *x, ptrdiff_t n, const V *s, const struct plan *p, const NAME(whole) *votes, V *room,
                              ptrdiff_t columns, V *counts)
{
    MASK to_low, below = ALL(0), on_low = ALL(0), on_high = ALL(0);
    const V low = NAME(pick)(x, n, s, &p->low, votes, room, &to_low);
    const V high = NAME(pick)(x, n, s, &p->high, votes, room, NULL);
    for (ptrdiff_t i = 0; i < n; i++) {
        below = below + (ALL(votes[i]) & (MASK)(x[i] < high));
        on_low = on_low + (ALL(votes[i]) & (MASK)(x[i] == low));
        on_high = on_high + (ALL(votes[i]) & (MASK)(x[i] == high));
    }
    const V vote = SPLAT((T)1 / (T)(p->high.number + 1 - p->low.number));
    const V one = CHOOSE((MASK)(low == high), SPLAT((T)1), REAL(to_low - ALL(p->low.number)) * vote) / REAL(on_low);
    const V other = REAL(ALL(p->high.number + 1) - below) * vote / REAL(on_high);
    V there = SPLAT((T)1);
    for (ptrdiff_t k = columns < 0 ? 0 : columns; k < VLEN; k++) there[k] = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        V share = CHOOSE((MASK)(x[i] > low) & (MASK)(x[i] < high), vote, SPLAT((T)0));
        share = CHOOSE((MASK)(x[i] == high), other, share);
        share = CHOOSE((MASK)(x[i] == low), one, share);
        counts[i] = counts[i] + share * SPLAT((T)votes[i]) * there;
    }
}

/* One vector of columns of sketch, trim or shares. There is room for n vectors in `x`, at which `from` points. */
static void NAME(vote)(const struct plan *p, const struct NAME(tile) *t, ptrdiff_t v, ptrdiff_t n, V *s,
                       const NAME(whole) *votes, V *room, V *x, const T *const *from, ptrdiff_t columns, V *counts)
{
    NAME(sort)(t->from, v * VLEN, n, s);
    for (ptrdiff_t i = 0; i < n; i++) x[i] = *(const LOOSE *)(t->from[i] + v * VLEN);
    if (p->op == SHARES) NAME(count_votes)(x, n, s, p, votes, room, columns, counts);
    else if (p->high.number - p->low.number > 1) t->centre[v] = NAME(pick_mean)(x, n, s, p, votes, room);
    else t->centre[v] = NAME(pick_middle)(x, n, s, p, votes, room);
    if (p->op != SKETCH && p->op != SPREAD) return;
    for (ptrdiff_t i = 0; i < n; i++) {
        const V gap = t->y[i * t->pitch + v] = x[i] - t->centre[v];
        x[i] = VMAX(gap, SPLAT((T)0) - gap);
    }
    NAME(sort)(from, 0, n, s);
    t->mad[v] = NAME(pick_middle)(x, n, s, p, votes, room);
}
#undef REAL
