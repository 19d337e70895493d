/* What cpu_passes.h does where rows have votes: row i stands for votes[i] copies of itself, and a rank numbers the copies of a
   sorted column. Up to NUMBERED rows, where votes can be looked up, sorting takes along which row a value is of. Else values are
   sorted alone, and which of them has a rank is found by counting the votes of the rows up to a middle one, as often as
   the positions that can have it must be halved. */

#define REAL(votes) __builtin_convertvector(votes, V)

struct NAME(voters) {
    ptrdiff_t n;           /* the rows that have votes: the others are as if they were not there */
    NAME(whole) *votes;
    T *share;              /* of all votes */
    ptrdiff_t *who;        /* which rows of the tile they are */
    const T **from, **far; /* where they lie in the tile; where their values lie in x */
    V *x, *room, *s;       /* one vector of each; room for 2n vectors more, and for n sorted ones */
};

/* The value with a rank, of n rows x whose sorted values are s; *reached: the votes up to it. */
static inline __attribute__((always_inline)) V NAME(pick)(const struct NAME(voters) *w, const struct rank *rank, MASK *reached)
{
    const V *const x = w->x, *const s = w->s;
    V *const room = w->room;
    const ptrdiff_t n = w->n;
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
            sum = ADD_UP_TO(sum, x[i], middle, ALL(w->votes[i]));
            other = ADD_UP_TO(other, x[i + 1], middle, ALL(w->votes[i + 1]));
        }
        if (i < n) sum = ADD_UP_TO(sum, x[i], middle, ALL(w->votes[i]));
        sum = sum + other;
        const MASK beyond = sum <= wanted;
        found = CHOOSE(beyond, found, middle);
        if (reached != NULL) *reached = (beyond & *reached) | (~beyond & sum);
        for (ptrdiff_t k = 0; k + 1 < half; k++) room[k] = CHOOSE(beyond, room[half + k], room[k]);
    }
    return found;
}

/* The least of n vectors x beyond a bound, `with` those on it; infinite where there is none. */
static inline __attribute__((always_inline)) V NAME(least)(const V *x, const ptrdiff_t n, V bound, const int with)
{
    V sum[4] = {SPLAT((T)INFINITY), SPLAT((T)INFINITY), SPLAT((T)INFINITY), SPLAT((T)INFINITY)};
    ptrdiff_t i = 0;
    for (; i + 3 < n; i += 4)
        _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++) sum[k] = LEAST_BEYOND(sum[k], x[i + k], bound, with);
    for (; i < n; i++) sum[0] = LEAST_BEYOND(sum[0], x[i], bound, with);
    return VMIN(VMIN(sum[0], sum[1]), VMIN(sum[2], sum[3]));
}

#ifdef LOOK_UP
/* The last bits of each value give way to its row's number, so that the votes up to each place of the sorted ones are at hand.
   The value at a place is the one that agrees with what lies there in all other bits; where values do that differ, sorting
   has left their order open. */
enum { NUMBERED = 64 };

#define NUMBER_ROW(value, i) REPLACE_BITS(value, ALL(NUMBERED - 1), ALL(i))
#define NUMBER(i)                                                                                                      \
    if ((i) < n) {                                                                                                     \
        const V value = *(const LOOSE *)(from[i] + at);                                                                \
        x[i] = value;                                                                                                  \
        s[i] = NUMBER_ROW(value, i);                                                                                   \
    }
#define MAY_PASS(i, rank) ((uint64_t)((i) + 1 - rank.first) <= (uint64_t)(rank.last - rank.first))
#define PASS_BY(i)                                                                                                     \
    if ((i) + 1 < n) {                                                                                                 \
        sum = sum + (MASK)LOOK_UP(votes, s[i], n);                                                                     \
        if (MAY_PASS(i, low)) low_ = CHOOSE(sum <= lower, s[(i) + 1], low_);                                           \
        if (two && MAY_PASS(i, high)) high_ = CHOOSE(sum <= higher, s[(i) + 1], high_);                                \
    }

/* The value at a place, the next greater one, and whether the order is open there. */
static inline __attribute__((always_inline)) V NAME(settle_order)(const V *x, const ptrdiff_t n, V place, V *next, MASK *open)
{
    const V one = (V)((MASK)place & ~ALL(NUMBERED - 1)), other = (V)((MASK)place | ALL(NUMBERED - 1));
    const V found = NAME(least)(x, n, VMIN(one, other), 1);
    *next = NAME(least)(x, n, found, 0);
    *open |= (MASK)(*next <= VMAX(one, other));
    return found;
}

/* The values at the places of a range's ends; 0 where an order is open. */
static inline __attribute__((always_inline)) int NAME(settle_ends)(const struct plan *p, const V *x, const ptrdiff_t n, V low,
                                                                   V high, V *first, V *last)
{
    const V one = (V)((MASK)high & ~ALL(NUMBERED - 1)), other = (V)((MASK)high | ALL(NUMBERED - 1));
    MASK open = ALL(0);
    V next;
    *first = *last = NAME(settle_order)(x, n, low, &next, &open);
    if (p->high.number == p->low.number + 1) *last = CHOOSE((MASK)(VMIN(one, other) > *first), next, *first);
    else if (p->high.number > p->low.number) *last = NAME(settle_order)(x, n, high, &next, &open);
    return !ANY(open);
}

/* `bound` for n rows whose values fit into the registers. */
#define NUMBERED_BOUND(n_)                                                                                             \
    static int NAME(bound_##n_)(const struct plan *p, const struct NAME(voters) *w, const T *const *from, ptrdiff_t at,\
                                V *first, V *last)                                                                     \
    {                                                                                                                  \
        enum { n = n_ };                                                                                               \
        const NAME(whole) *const votes = w->votes;                                                                     \
        const struct rank low = p->low, high = p->high;                                                                \
        const MASK lower = ALL(p->low.number), higher = ALL(p->high.number);                                           \
        const int two = p->low.number < p->high.number;                                                                \
        V s[32], *const x = w->x;                                                                                      \
        EACH(NUMBER) SORT32(0)                                                                                         \
        MASK sum = ALL(0);                                                                                             \
        V low_ = s[0], high_ = s[0];                                                                                   \
        EACH(PASS_BY)                                                                                                  \
        return NAME(settle_ends)(p, x, n, low_, high_, first, last);                                                   \
    }
#define BOUND_NAME(n_) NAME(bound_##n_),
RUNS(NUMBERED_BOUND)
static int (*const NAME(bounds)[])(const struct plan *, const struct NAME(voters) *, const T *const *, ptrdiff_t, V *,
                                   V *) = {NULL, RUNS(BOUND_NAME)};

/* The same for more rows than registers hold. */
static int NAME(bound_many)(const struct plan *p, const struct NAME(voters) *w, const T *const *from, ptrdiff_t at, V *first,
                            V *last)
{
    const ptrdiff_t n = w->n;
    V *const x = w->x, *const s = w->s, place[2];
    MASK *const ends = (MASK *)w->room, sum = ALL(0);
    for (ptrdiff_t i = 0; i < n; i++) {
        x[i] = *(const LOOSE *)(from[i] + at);
        w->room[i] = NUMBER_ROW(x[i], i);
    }
    NAME(sort)(w->far, (w->room - x) * VLEN, n, s);
    for (ptrdiff_t k = 0; k < n; k++) ends[k] = sum = sum + (MASK)LOOK_UP(w->votes, s[k], n);
    for (int end = 0; end < 2; end++) {
        const struct rank rank = end ? p->high : p->low;
        place[end] = s[rank.first];
        for (ptrdiff_t k = rank.first; k < rank.last; k++)
            place[end] = CHOOSE(ends[k] <= ALL(rank.number), s[k + 1], place[end]);
    }
    return NAME(settle_ends)(p, x, n, place[0], place[1], first, last);
}
#undef NUMBER
#undef NUMBER_ROW
#undef MAY_PASS
#undef PASS_BY
#undef NUMBERED_BOUND
#undef BOUND_NAME
#endif

/* The first and the last value of a range of ranks, in a vector of columns of the voters, who lie at from + at and are
   copied into x. */
static void NAME(bound)(const struct plan *p, const struct NAME(voters) *w, const T *const *from, ptrdiff_t at, V *low, V *high)
{
#ifdef LOOK_UP
    if (w->n <= RUN_MAX && NAME(bounds)[w->n](p, w, from, at, low, high)) return;
    if (w->n > RUN_MAX && w->n <= NUMBERED && NAME(bound_many)(p, w, from, at, low, high)) return;
#endif
    NAME(sort)(from, at, w->n, w->s);
    for (ptrdiff_t i = 0; i < w->n; i++) w->x[i] = *(const LOOSE *)(from[i] + at);
    const int next = p->high.number == p->low.number + 1;
    MASK reached;
    *low = *high = NAME(pick)(w, &p->low, next ? &reached : NULL);
    if (p->high.number == p->low.number) return;
    if (!next) {
        *high = NAME(pick)(w, &p->high, NULL);
        return;
    }
    const MASK apart = reached <= ALL(p->high.number);
    if (ANY(apart)) *high = CHOOSE(apart, NAME(least)(w->x, w->n, *low, 0), *low);
}

/* The midpoint of the bounds. */
static V NAME(pick_middle)(const struct plan *p, const struct NAME(voters) *w, const T *const *from, ptrdiff_t at)
{
    V low, high;
    NAME(bound)(p, w, from, at, &low, &high);
    return CHOOSE((MASK)(low == high), low, low * SPLAT((T)0.5) + high * SPLAT((T)0.5));
}

/* The mean of the copies in a range of ranks; it lies between its bounds, whatever the rounding. Copies beyond a bound count
   as if they lay on it, and are taken away again; shares of all votes keep the sums in range. */
static V NAME(pick_mean)(const struct plan *p, const struct NAME(voters) *w, const T *const *from, ptrdiff_t at)
{
    V low, high;
    NAME(bound)(p, w, from, at, &low, &high);
    const double all = (double)p->total, lo = (double)p->low.number, hi = (double)p->high.number + 1;
    V sum = low * SPLAT((T)(-lo / all)) + high * SPLAT((T)((hi - all) / all));
    for (ptrdiff_t i = 0; i < w->n; i++) sum = FMA(VMAX(VMIN(w->x[i], high), low), SPLAT(w->share[i]), sum);
    return VMAX(VMIN(sum * SPLAT((T)(all / (hi - lo))), high), low);
}

/* Each voter's share of a range of ranks, of the first `columns` columns, added to the counts (n) of rows: voters on one
   bound share it by their votes. */
static void NAME(count_votes)(const struct plan *p, const struct NAME(voters) *w, ptrdiff_t at, ptrdiff_t columns, V *counts)
{
    const V *const x = w->x;
    MASK to_low = ALL(0), below = ALL(0), on_low = ALL(0), on_high = ALL(0);
    V low, high;
    NAME(bound)(p, w, w->from, at, &low, &high);
    for (ptrdiff_t i = 0; i < w->n; i++) {
        const MASK votes = ALL(w->votes[i]);
        to_low = ADD_UP_TO(to_low, x[i], low, votes);
        below = below + (votes & (MASK)(x[i] < high));
        on_low = on_low + (votes & (MASK)(x[i] == low));
        on_high = on_high + (votes & (MASK)(x[i] == high));
    }
    const V vote = SPLAT((T)1 / (T)(p->high.number + 1 - p->low.number));
    const V one = CHOOSE((MASK)(low == high), SPLAT((T)1), REAL(to_low - ALL(p->low.number)) * vote) / REAL(on_low);
    const V other = REAL(ALL(p->high.number + 1) - below) * vote / REAL(on_high);
    V there = SPLAT((T)1);
    for (ptrdiff_t k = columns < 0 ? 0 : columns; k < VLEN; k++) there[k] = 0;
    for (ptrdiff_t i = 0; i < w->n; i++) {
        V share = CHOOSE((MASK)(x[i] > low) & (MASK)(x[i] < high), vote, SPLAT((T)0));
        share = CHOOSE((MASK)(x[i] == high), other, share);
        share = CHOOSE((MASK)(x[i] == low), one, share);
        counts[w->who[i]] = counts[w->who[i]] + share * SPLAT((T)w->votes[i]) * there;
    }
}

/* One vector of columns of sketch, trim or shares, of m rows. */
static void NAME(vote)(const struct plan *p, const struct NAME(tile) *t, const struct NAME(voters) *w, ptrdiff_t v, ptrdiff_t m,
                       ptrdiff_t columns, V *counts)
{
    if (p->op == SHARES) NAME(count_votes)(p, w, v * VLEN, columns, counts);
    else if (p->high.number - p->low.number > 1) t->centre[v] = NAME(pick_mean)(p, w, w->from, v * VLEN);
    else t->centre[v] = NAME(pick_middle)(p, w, w->from, v * VLEN);
    if (p->op != SKETCH && p->op != SPREAD) return;
    const V centre = t->centre[v];
    for (ptrdiff_t i = 0; i < w->n; i++) {
        const V gap = w->x[i] - centre;
        w->x[i] = VMAX(gap, SPLAT((T)0) - gap);
    }
    for (ptrdiff_t i = 0; p->op == SKETCH && i < m; i++)
        t->y[i * t->pitch + v] = *(const LOOSE *)(t->from[i] + v * VLEN) - centre;
    t->mad[v] = NAME(pick_middle)(p, w, w->far, 0);
}
#undef REAL
