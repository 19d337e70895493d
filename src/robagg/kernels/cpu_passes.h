/* The passes over the stack for one instruction set and one compute type; cpu.c includes this file once for each.

   It needs from the includer: T (float or double), V (a vector of VLEN of them), NAME(x) (x with a suffix of its own),
   VMIN, VMAX, FMA, SPLAT, VSUM on vectors, BLOCK (a Gram block has BLOCK x BLOCK sums: as many as there are registers)
   with its list BLOCKS, and HALVES, which widens 64 float16 to float32. With FUSED a sketch or a median of n <= 32 rows
   gets a function of its own for each n, which leaves nothing but results in memory: for float only, as code costs too.

   Columns are taken a tile at a time, which stays in cache. Columns past d are zeros: they add nothing to any sum. */

typedef V NAME(loose) __attribute__((aligned(sizeof(T)))); /* the same vector at any address */
#define LOOSE NAME(loose)
#ifndef OTHER /* that of a and b which is not `least` */
#define OTHER(a, b, least) VMAX(a, b)
#endif
#ifdef FUSED
#define RUN_MAX 32
#define RUNS(F) UP_TO_16(F) UP_TO_32(F)
#define BITONIC APART4(0, 16) APART4(4, 16) APART4(8, 16) APART4(12, 16) CLEAN16(0) CLEAN16(16)
#else
#define RUN_MAX 16
#define RUNS(F) UP_TO_16(F)
#define BITONIC CLEAN16(0)
#endif

struct NAME(tile) {
    const T **from;     /* where the rows lie that are sorted: in the stack, or converted or mixed in y */
    const char **ahead; /* where the rows' next tile begins */
    V *y;               /* rows and anchors, at last less the median; `pitch` vectors from one to the next */
    V *centre, *mad;
    ptrdiff_t pitch, count, step; /* `count` vectors of columns; `step` bytes of a row as it lies make one */
};

/* `count` elements of a vector, from element `at` on, into dst; zeros behind them up to `width`. */
static void NAME(load)(T *restrict dst, const struct row *row, int64_t at, int64_t count, int64_t width)
{
    const int64_t step = row->stride;
#define COPY(type, convert)                                                                                            \
    do {                                                                                                               \
        const type *restrict src = (const type *)row->data + at * step;                                                \
        int64_t k = 0;                                                                                                 \
        for (; step == 1 && k + 64 <= count; k += 64) /* a number of turns that the compiler makes vectors of */       \
            for (int l = 0; l < 64; l++) dst[k + l] = (T)convert(src[k + l]);                                          \
        for (; k < count; k++) dst[k] = (T)convert(src[k * step]);                                                     \
    } while (0)
    if (row->data == NULL) count = 0; /* the origin */
    else if (row->dtype == FLOAT32) COPY(float, );
    else if (row->dtype == FLOAT64) COPY(double, );
    else if (row->dtype == BFLOAT16) COPY(uint16_t, bfloat);
    else {
        uint16_t half[64] = {0};
        float wide[64];
        const uint16_t *src = (const uint16_t *)row->data + at * step;
        int64_t k = 0;
        for (; step == 1 && k + 64 <= count; k += 64) {
            HALVES(wide, src + k);
            for (int l = 0; l < 64; l++) dst[k + l] = (T)wide[l];
        }
        for (; k < count; k += 64) {
            const int64_t some = count - k < 64 ? count - k : 64;
            for (int64_t l = 0; l < some; l++) half[l] = src[(k + l) * step];
            HALVES(wide, half);
            for (int64_t l = 0; l < some; l++) dst[k + l] = (T)wide[l];
        }
    }
#undef COPY
    memset(dst + count, 0, (size_t)(width - count) * sizeof(T));
}

/* Sorting n <= RUN_MAX vectors lane by lane, in registers. The network is that for 32 wires without the comparators
   that touch a wire >= n: were those wires +inf, they would never move. n is a constant in each of the functions made
   from this, so the compiler also leaves out what a result does not need. */
#define SWAP(i, j)                                                                                                     \
    if ((j) < n) {                                                                                                     \
        const V least = VMIN(s[i], s[j]);                                                                              \
        s[j] = OTHER(s[i], s[j], least);                                                                               \
        s[i] = least;                                                                                                  \
    }
#define READ(i) if ((i) < n) s[i] = *(const LOOSE *)(from[i] + at);
#define WRITE(i) if ((i) < n) out[i] = s[i];
#define RUN(n_)                                                                                                        \
    static void NAME(run_##n_)(const T *const *from, ptrdiff_t at, V *out)                                             \
    {                                                                                                                  \
        enum { n = n_ };                                                                                               \
        V s[32];                                                                                                       \
        EACH(READ) SORT32(0) EACH(WRITE)                                                                               \
    }
#define RUN_NAME(n_) NAME(run_##n_),
RUNS(RUN)
static void (*const NAME(run)[])(const T *const *, ptrdiff_t, V *) = {NULL, RUNS(RUN_NAME)};

/* The last layers of a bitonic merge, those inside a block of RUN_MAX; only the first `valid` wires are there, the
   others count as +inf. With `across` the layer before comes too: wire i meets its mirror image in the next run. */
static inline __attribute__((always_inline)) void NAME(settle)(V *out, ptrdiff_t valid, const int across)
{
    enum { n = RUN_MAX };
    V s[32];
#define READ_VALID(i)                                                                                                  \
    if ((i) < n) s[i] = (i) < valid ? out[i] : SPLAT((T)INFINITY);                                                     \
    if ((i) < n && across && 2 * n - 1 - (i) < valid) {                                                                \
        V *far = out + 2 * n - 1 - (i);                                                                                \
        const V least = VMIN(s[i], *far);                                                                              \
        *far = OTHER(s[i], *far, least);                                                                               \
        s[i] = least;                                                                                                  \
    }
#define WRITE_VALID(i) if ((i) < n && (i) < valid) out[i] = s[i];
    EACH(READ_VALID) BITONIC EACH(WRITE_VALID)
}

static void NAME(merge)(V *s, ptrdiff_t valid)
{
    if (valid < 2 * RUN_MAX) {
        NAME(settle)(s, valid, 1);
        NAME(settle)(s + RUN_MAX, valid - RUN_MAX, 0);
    } else { /* the same without asking for every wire */
        NAME(settle)(s, 2 * RUN_MAX, 1);
        NAME(settle)(s + RUN_MAX, RUN_MAX, 0);
    }
}

static inline void NAME(swap)(V *a, V *b)
{
    const V least = VMIN(*a, *b);
    *b = OTHER(*a, *b, least);
    *a = least;
}

/* Sort n vectors lane by lane into s: runs in registers, then bitonic merges of runs. */
static void NAME(sort)(const T *const *from, ptrdiff_t at, ptrdiff_t n, V *s)
{
    for (ptrdiff_t i = 0; i < n; i += RUN_MAX) NAME(run)[n - i < RUN_MAX ? n - i : RUN_MAX](from + i, at, s + i);
    for (ptrdiff_t i = 0; i + RUN_MAX < n; i += 2 * RUN_MAX) NAME(merge)(s + i, n - i);
    for (ptrdiff_t half = 2 * RUN_MAX; half < n; half *= 2) {
        for (ptrdiff_t base = 0; base + half < n; base += 2 * half)
            for (ptrdiff_t i = base, j = base + 2 * half - 1; i < j; i++, j--)
                if (j < n) NAME(swap)(s + i, s + j);
        for (ptrdiff_t gap = half / 2; gap >= RUN_MAX; gap /= 2)
            for (ptrdiff_t base = 0; base + gap < n; base += 2 * gap)
                for (ptrdiff_t i = base; i < base + gap && i + gap < n; i++) NAME(swap)(s + i, s + i + gap);
        for (ptrdiff_t base = 0; base < n; base += RUN_MAX) NAME(settle)(s + base, n - base, 0);
    }
}

/* The median of n sorted vectors, and the median distance to it. */
static inline __attribute__((always_inline)) V NAME(median)(const V *s, const ptrdiff_t n, V *mad)
{
    const V half = SPLAT((T)0.5);
    const ptrdiff_t h = n / 2;
    const V centre = n % 2 ? s[h] : (V)(s[h - 1] * half + s[h] * half);
    V lo = SPLAT((T)0), hi = SPLAT((T)INFINITY);
    _Pragma("GCC unroll 16") for (ptrdiff_t i = 0; i < h; i++) {
        const V left = centre - s[h - 1 - i], right = s[n - 1 - i] - centre;
        const V least = VMIN(left, right);
        lo = VMAX(least, lo);
        hi = VMIN(OTHER(left, right, least), hi);
    }
    *mad = n % 2 ? lo : (V)(lo * half + hi * half);
    return centre;
}

/* The mean of the sorted vectors lo, ..., hi-1. Each is divided first, so that the sum does not overflow; the mean lies
   between the first and the last of them, whatever the rounding. */
static inline V NAME(range)(const V *s, ptrdiff_t lo, ptrdiff_t hi)
{
    const V share = SPLAT((T)1 / (T)(hi - lo));
    V sum = s[lo] * share;
    for (ptrdiff_t i = lo + 1; i < hi; i++) sum = sum + s[i] * share;
    return VMAX(VMIN(sum, s[hi - 1]), s[lo]);
}

#ifdef FUSED
/* A tile's medians, and for a sketch its MADs and its rows less the median. Its next tile comes from memory meanwhile;
   the rows < spared are left to the Gram products, so that memory is busy then too. */
#define AHEAD(i) if ((i) < n && (i) >= spared) __builtin_prefetch(ahead[i] + v * step, 0, 3);
#define CENTRE(i) if ((i) < n) y[(i) * pitch + v] = *(const LOOSE *)(from[i] + at) - centre;
#define COLUMNS(name, n_, sketch)                                                                                      \
    static void NAME(name)(const struct NAME(tile) *t)                                                                 \
    {                                                                                                                  \
        enum { n = n_, blocks = (n_ + BLOCK - 1) / BLOCK, spared = sketch ? blocks * (blocks + 1) / 2 : 0 };           \
        const T *const *from = t->from;                                                                                \
        const char *const *ahead = t->ahead;                                                                           \
        const ptrdiff_t pitch = t->pitch, count = t->count, step = t->step;                                            \
        V *const y = t->y, *const centres = t->centre, *const mads = t->mad;                                           \
        for (ptrdiff_t v = 0, at = 0; v < count; v++, at += VLEN) {                                                    \
            V s[32], mad;                                                                                              \
            EACH(READ) EACH(AHEAD) SORT32(0)                                                                           \
            const V centre = NAME(median)(s, n, &mad);                                                                 \
            centres[v] = centre;                                                                                       \
            if (sketch) {                                                                                              \
                mads[v] = mad;                                                                                         \
                EACH(CENTRE)                                                                                           \
            }                                                                                                          \
        }                                                                                                              \
        (void)pitch, (void)y, (void)mads;                                                                              \
    }
#define FUSE(n_) COLUMNS(sketch_##n_, n_, 1) COLUMNS(median_##n_, n_, 0)
#define SKETCH_NAME(n_) NAME(sketch_##n_),
#define MEDIAN_NAME(n_) NAME(median_##n_),
RUNS(FUSE)
static void (*const NAME(sketches)[])(const struct NAME(tile) *) = {NULL, RUNS(SKETCH_NAME)};
static void (*const NAME(medians)[])(const struct NAME(tile) *) = {NULL, RUNS(MEDIAN_NAME)};
#endif

/* The products of R rows at a with C rows at b, added lane by lane; the lower half of a diagonal block is left out. */
static inline __attribute__((always_inline)) void
NAME(block)(const int R, const int C, const int diagonal, const struct NAME(tile) *t, const V *a, const V *b, V *sums,
            const char *ahead)
{
    const ptrdiff_t pitch = t->pitch, count = t->count, step = t->step;
    V g[BLOCK][BLOCK], left[BLOCK];
#define PAIRS                                                                                                          \
    _Pragma("GCC unroll 8") for (int j = 0; j < C; j++) _Pragma("GCC unroll 8") for (int i = 0; i < R; i++)            \
        if (!diagonal || i <= j)
    PAIRS g[i][j] = sums[i * BLOCK + j];
    for (ptrdiff_t v = 0; v < count; v++) {
        __builtin_prefetch(ahead + v * step, 0, 3);
        _Pragma("GCC unroll 8") for (int i = 0; i < R; i++) left[i] = a[i * pitch + v];
        _Pragma("GCC unroll 8") for (int j = 0; j < C; j++) {
            const V right = diagonal ? left[j] : b[j * pitch + v];
            _Pragma("GCC unroll 8") for (int i = 0; i < R; i++)
                if (!diagonal || i <= j) g[i][j] = FMA(left[i], right, g[i][j]);
        }
    }
    PAIRS sums[i * BLOCK + j] = g[i][j];
#undef PAIRS
}
#define PRODUCT(R, C)                                                                                                  \
    static void NAME(block_##R##C)(const struct NAME(tile) *t, const V *a, const V *b, V *sums, const char *ahead)     \
    {                                                                                                                  \
        if (R == C && a == b) NAME(block)(R, C, 1, t, a, b, sums, ahead);                                              \
        else NAME(block)(R, C, 0, t, a, b, sums, ahead);                                                               \
    }
#define PRODUCT_NAME(R, C) NAME(block_##R##C),
BLOCKS(PRODUCT)
static void (*const NAME(product)[])(const struct NAME(tile) *, const V *, const V *, V *, const char *) = {
    BLOCKS(PRODUCT_NAME)};

/* For each pair of blocks I <= J of the `size` rows: add the tile's products to the vectors `sums`, or, at a flush, the
   vectors to the float64 matrix. Blocks are of nearly equal size, so that few registers idle. */
static void NAME(gram)(const struct NAME(tile) *t, ptrdiff_t n, ptrdiff_t size, V *sums, double *flush)
{
    const ptrdiff_t blocks = (size + BLOCK - 1) / BLOCK;
    for (ptrdiff_t I = 0, pair = 0; I < blocks; I++) {
        const ptrdiff_t i0 = I * size / blocks, i1 = (I + 1) * size / blocks;
        for (ptrdiff_t J = I; J < blocks; J++, pair++, sums += BLOCK * BLOCK) {
            const ptrdiff_t j0 = J * size / blocks, j1 = (J + 1) * size / blocks;
            if (flush == NULL) {
                const V *a = t->y + i0 * t->pitch, *b = t->y + j0 * t->pitch;
                NAME(product)[(i1 - i0 - 1) * BLOCK + j1 - j0 - 1](t, a, b, sums, t->ahead[pair % n]);
                continue;
            }
            for (ptrdiff_t i = i0; i < i1; i++)
                for (ptrdiff_t j = I == J ? i : j0; j < j1; j++) {
                    V *sum = sums + (i - i0) * BLOCK + j - j0;
                    flush[i * size + j] += (double)VSUM(*sum);
                    *sum = SPLAT((T)0);
                }
        }
    }
}

/* Rows of the mix times the raw rows into y, two at a time, so that what both take is read once; some vectors of columns
   at a time, so that what is read again and again stays in the nearest cache. Every mixed row adds up in the order of
   the raw ones: rows that are mixed alike come out alike. Where each has one weight, half of the sums are plain
   additions, which units do that multiply nothing. */
static inline __attribute__((always_inline)) void
NAME(mix_pairs)(const struct plan *p, const struct NAME(tile) *t, const T *const *raw, const int even)
{
    enum { W = BLOCK == 5 ? WIDE : WIDE / 2 }; /* two sums of W vectors must fit into the registers */
    const ptrdiff_t pitch = t->pitch;
    for (ptrdiff_t v = 0; v < t->count; v += W) {
        const struct term *term = p->terms;
        for (ptrdiff_t i = 0; i < p->m; i += 2) {
            V a[W], b[W];
            _Pragma("GCC unroll 8") for (int k = 0; k < W; k++) a[k] = b[k] = SPLAT((T)0);
            for (; term < p->terms + p->ends[i / 2]; term++) {
                const LOOSE *const from = (const LOOSE *)(raw[term->row] + v * VLEN);
                const V first = SPLAT((T)term->weight[0]), second = SPLAT(even ? (T)1 : (T)term->weight[1]);
#define ADD_FIRST (a[k] = even ? (V)(a[k] + from[k]) : (V)FMA(from[k], first, a[k]))
#define ADD_SECOND (b[k] = FMA(from[k], second, b[k]))
                if (term->who == 3)
                    _Pragma("GCC unroll 8") for (int k = 0; k < W; k++) ADD_FIRST, ADD_SECOND;
                else if (term->who == 1)
                    _Pragma("GCC unroll 8") for (int k = 0; k < W; k++) ADD_FIRST;
                else
                    _Pragma("GCC unroll 8") for (int k = 0; k < W; k++) ADD_SECOND;
#undef ADD_FIRST
#undef ADD_SECOND
            }
            const V scale[2] = {SPLAT((T)p->scale[i]), SPLAT((T)p->scale[i + 1 < p->m ? i + 1 : i])};
            V *const to = t->y + i * pitch + v;
            _Pragma("GCC unroll 8") for (int k = 0; k < W; k++) to[k] = even ? (V)(a[k] * scale[0]) : a[k];
            if (i + 1 < p->m)
                _Pragma("GCC unroll 8") for (int k = 0; k < W; k++)
                    to[pitch + k] = even ? (V)(b[k] * scale[1]) : b[k];
        }
    }
}

static void NAME(mix)(const struct plan *p, const struct NAME(tile) *t, const T *const *raw)
{
    if (p->even) NAME(mix_pairs)(p, t, raw, 1);
    else NAME(mix_pairs)(p, t, raw, 0);
}

/* Whoever lies within the bounds of a column shares it: the first `columns` of vector v, added to the counts (m). */
static void NAME(count)(const struct NAME(tile) *t, ptrdiff_t v, ptrdiff_t columns, ptrdiff_t m, V low, V high, V *counts)
{
    typedef __typeof__(low <= high) mask;
    const V one = SPLAT((T)1);
    V inside = SPLAT((T)0);
#define WITHIN(x) (V)((mask)one & ((x) >= low) & ((x) <= high))
    for (ptrdiff_t i = 0; i < m; i++) inside = inside + WITHIN(*(const LOOSE *)(t->from[i] + v * VLEN));
    V share = one / VMAX(inside, one);
    for (ptrdiff_t k = columns < 0 ? 0 : columns; k < VLEN; k++) share[k] = 0;
    for (ptrdiff_t i = 0; i < m; i++)
        counts[i] = counts[i] + WITHIN(*(const LOOSE *)(t->from[i] + v * VLEN)) * share;
#undef WITHIN
}

#include "cpu_select.h"

/* Every column of the tile divided by the root of its squared MAD and the floor; a column where both are 0 becomes 0. */
static void NAME(measure_in_mads)(const struct NAME(tile) *t, ptrdiff_t size, double floor)
{
    T *const unit = (T *)t->mad;
    for (ptrdiff_t k = 0; k < t->count * VLEN; k++) {
        const double squared = (double)unit[k] * (double)unit[k] + floor;
        unit[k] = squared > 0 ? (T)(1 / sqrt(squared)) : (T)0;
    }
    for (ptrdiff_t i = 0; i < size; i++)
        for (ptrdiff_t v = 0; v < t->count; v++) t->y[i * t->pitch + v] = t->y[i * t->pitch + v] * t->mad[v];
}

#include "cpu_votes.h"

/* Scratch bytes of one thread, in the order in which `sorted` deals them out. */
static size_t NAME(scratch)(const struct plan *p)
{
    const size_t blocks = (size_t)(p->size + BLOCK - 1) / BLOCK, m = (size_t)p->m, n = (size_t)p->n;
    const size_t rows = (size_t)p->size + (p->mixed ? n : 0) + 2;
    const size_t sums = p->op == SKETCH ? blocks * (blocks + 1) / 2 * BLOCK * BLOCK : m;
    const size_t vectors = m + sums + (p->votes ? 4 * m + 4 : 0);
    return rows * ((size_t)p->tile * sizeof(T) + LINE) + vectors * sizeof(V) + (5 * m + 2 * n) * sizeof(void *);
}

/* Columns begin..end of sketch, spread, trim or shares: the median or trimmed mean to p->value, and this chunk's own sums
   to `sums`. */
static void NAME(sorted)(const struct plan *p, int64_t begin, int64_t end, void *scratch, struct sums *sums)
{
    const ptrdiff_t n = p->n, m = p->m, size = p->size, blocks = (size + BLOCK - 1) / BLOCK;
    const ptrdiff_t pairs = blocks * (blocks + 1) / 2;
    const ptrdiff_t lanes = p->op == SKETCH ? pairs * BLOCK * BLOCK : m;
    struct NAME(tile) tile = {.y = scratch, .step = VLEN * p->rows->bytes}, *const t = &tile;
    /* An odd number of cache lines: rows of the tile do not fight for the same cache sets. */
    const ptrdiff_t pitch = t->pitch = (ptrdiff_t)((size_t)p->tile * sizeof(T) + LINE) / (ptrdiff_t)sizeof(V);
    V *const raw = p->mixed ? t->y + size * pitch : t->y;
    t->centre = t->y + (size + (p->mixed ? n : 0)) * pitch;
    t->mad = t->centre + pitch;
    V *const s = t->mad + pitch, *const products = s + m, *const away = products + lanes, *const room = away + m;
    const V zero = SPLAT((T)0);
    V trouble[4] = {zero, zero, zero, zero};
    t->from = (const T **)(p->votes ? room + 3 * m + 4 : away);
    const T **const sent = p->mixed ? t->from + m : t->from; /* where the rows lie that were sent */
    t->ahead = (const char **)(t->from + m + (p->mixed ? n : 0));
    const T **const far = (const T **)(t->ahead + (m > n ? m : n));
    struct NAME(voters) voters = {.x = away, .room = room, .s = s, .far = far, .from = far + m}, *const w = &voters;
    if (p->votes) {
        w->share = (T *)(room + 2 * m);
        w->votes = (NAME(whole) *)w->share + m;
        w->who = (ptrdiff_t *)(w->from + m);
    }
    for (ptrdiff_t i = 0; p->votes && i < m; i++) {
        if (!p->votes[i]) continue;
        w->who[w->n] = i;
        w->votes[w->n] = (NAME(whole))p->votes[i];
        w->share[w->n] = (T)((double)p->votes[i] / (double)p->total);
        far[w->n] = (const T *)(away + w->n);
        w->n++;
    }
    const int median = p->op == TRIM && p->lo == (m - 1) / 2 && p->hi == m / 2 + 1;
    double spread[8] = {0};
    int since = 0;
    memset(products, 0, (size_t)lanes * sizeof(V));
    for (int64_t at = begin; at < end; at += p->tile) {
        const int64_t some = end - at < p->tile ? end - at : p->tile;
        const ptrdiff_t count = t->count = (some + VLEN * WIDE - 1) / (VLEN * WIDE) * WIDE;
        const int direct = p->direct && some == p->tile;
        for (ptrdiff_t i = 0; i < n; i++) {
            const struct row *row = p->rows + i;
            T *const copy = (T *)(raw + i * pitch);
            if (!direct) NAME(load)(copy, row, at, some, count * VLEN);
            const T *const where = direct ? (const T *)row->data + at : copy;
            sent[i] = where;
            if (p->op == TRIM) /* 0 times what is not finite is NaN */
                for (ptrdiff_t v = 0; v < count; v += 4)
                    _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)
                        trouble[k] = FMA(*(const LOOSE *)(where + (v + k) * VLEN), zero, trouble[k]);
        }
        for (ptrdiff_t i = 0; i < (m > n ? m : n); i++) {
            const struct row *row = p->rows + i % n;
            t->ahead[i] = (const char *)row->data + (at + p->tile) * row->stride * row->bytes;
        }
        if (p->mixed) {
            NAME(mix)(p, t, sent);
            for (ptrdiff_t i = 0; i < m; i++) t->from[i] = (const T *)(t->y + i * pitch);
        }
        for (ptrdiff_t k = 0; k < w->n; k++) w->from[k] = t->from[w->who[k]];
#ifdef FUSED
        if (m <= RUN_MAX && p->op == SKETCH && !p->votes) NAME(sketches)[m](t);
        else if (m <= RUN_MAX && median && !p->votes) NAME(medians)[m](t);
        else
#endif
        for (ptrdiff_t v = 0; v < count; v++) {
            const ptrdiff_t spared = p->op == SKETCH ? pairs : 0;
            for (ptrdiff_t i = spared; i < n; i++) __builtin_prefetch(t->ahead[i] + v * t->step, 0, 3);
            if (p->votes) {
                NAME(vote)(p, t, w, v, m, some - v * VLEN, products);
                continue;
            }
            if (m > (median ? FEW : MANY) && p->op != SKETCH) {
                NAME(pick_columns)(p, t, v, m, s, median, some - v * VLEN, products);
                continue;
            }
            NAME(sort)(t->from, v * VLEN, m, s);
            if (p->op == SHARES) {
                NAME(count)(t, v, some - v * VLEN, m, s[p->lo], s[p->hi - 1], products);
                continue;
            }
            if (p->op == TRIM && !median) t->centre[v] = NAME(range)(s, p->lo, p->hi);
            else t->centre[v] = NAME(median)(s, m, t->mad + v);
            for (ptrdiff_t i = 0; i < (p->op == SKETCH ? m : 0); i++)
                t->y[i * pitch + v] = *(const LOOSE *)(t->from[i] + v * VLEN) - t->centre[v];
        }
        if (p->op == SHARES) {
            for (ptrdiff_t i = 0; i < m; i++) sums->gram[i] += (double)VSUM(products[i]), products[i] = zero;
            continue;
        }
        memcpy((T *)p->value + at, t->centre, (size_t)some * sizeof(T));
        if (p->op == TRIM) continue;
        const T *const mad = (const T *)t->mad;
        for (ptrdiff_t k = 0; k < count * VLEN; k += 8)
            for (int l = 0; l < 8; l++) spread[l] += (double)mad[k + l] * (double)mad[k + l];
        if (p->op == SPREAD) continue;
        for (ptrdiff_t i = m; i < size; i++) {
            V *const anchor = t->y + i * pitch;
            NAME(load)((T *)anchor, p->rows + n + i - m, at, some, count * VLEN);
            for (ptrdiff_t v = 0; v < count; v++) anchor[v] = anchor[v] - t->centre[v];
        }
        if (p->floor >= 0) NAME(measure_in_mads)(t, size, p->floor);
        NAME(gram)(t, n, size, products, NULL);
        if (++since == FLUSH || at + some == end) NAME(gram)(t, n, size, products, sums->gram), since = 0;
    }
    for (int l = 0; l < 8; l++) sums->spread += spread[l];
    sums->alarm = !(VSUM(trouble[0]) + VSUM(trouble[1]) + VSUM(trouble[2]) + VSUM(trouble[3]) == 0);
}

/* Columns begin..end of combine: four rows at a time, read where they lie if nothing needs converting. */
static void NAME(combine)(const struct plan *p, int64_t begin, int64_t end, void *scratch, struct sums *sums)
{
    const ptrdiff_t pitch = (ptrdiff_t)(p->tile * (int64_t)sizeof(T) + LINE) / (ptrdiff_t)sizeof(V);
    V *sum = scratch, trouble = SPLAT((T)0);
    for (int64_t at = begin; at < end; at += p->tile) {
        const int64_t some = end - at < p->tile ? end - at : p->tile;
        const ptrdiff_t count = (some + VLEN - 1) / VLEN;
        memset(sum, 0, (size_t)count * sizeof(V));
        for (ptrdiff_t i = 0; i < p->n; i += 4) {
            const LOOSE *source[4];
            V c[4];
            for (int k = 0; k < 4; k++) {
                const struct row *row = i + k < p->n ? p->rows + i + k : &origin;
                c[k] = SPLAT(i + k < p->n ? (T)p->weights[i + k] : (T)0);
                if (row->stride == 1 && row->bytes == (int32_t)sizeof(T) && some == count * VLEN)
                    source[k] = (const LOOSE *)((const T *)row->data + at);
                else {
                    V *copy = sum + (k + 1) * pitch;
                    NAME(load)((T *)copy, row, at, some, count * VLEN);
                    source[k] = (const LOOSE *)copy;
                }
            }
            for (ptrdiff_t v = 0; v < count; v++)
                sum[v] = FMA(source[3][v], c[3],
                             FMA(source[2][v], c[2], FMA(source[1][v], c[1], FMA(source[0][v], c[0], sum[v]))));
        }
        for (ptrdiff_t v = 0; v < count; v++) trouble = FMA(sum[v], SPLAT((T)0), trouble);
        memcpy((T *)p->value + at, sum, (size_t)some * sizeof(T));
    }
    sums->alarm = !(VSUM(trouble) == 0);
}

/* Columns begin..end of measure: the squared distance of every row to the one behind them, in double. */
static void NAME(measure)(const struct plan *p, int64_t begin, int64_t end, void *scratch, struct sums *sums)
{
    const ptrdiff_t pitch = (ptrdiff_t)(p->tile * (int64_t)sizeof(T) + LINE) / (ptrdiff_t)sizeof(V);
    V *const point = scratch, *const row = point + pitch;
    for (int64_t at = begin; at < end; at += p->tile) {
        const int64_t some = end - at < p->tile ? end - at : p->tile;
        const ptrdiff_t count = (some + 4 * VLEN - 1) / (4 * VLEN) * 4;
        NAME(load)((T *)point, p->rows + p->n, at, some, count * VLEN);
        for (ptrdiff_t i = 0; i < p->n; i++) {
            V sum[4] = {SPLAT((T)0), SPLAT((T)0), SPLAT((T)0), SPLAT((T)0)};
            NAME(load)((T *)row, p->rows + i, at, some, count * VLEN);
            for (ptrdiff_t v = 0; v < count; v += 4)
                _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++) {
                    const V gap = row[v + k] - point[v + k];
                    sum[k] = FMA(gap, gap, sum[k]);
                }
            sums->gram[i] += (double)VSUM(sum[0]) + (double)VSUM(sum[1]) + (double)VSUM(sum[2]) + (double)VSUM(sum[3]);
        }
    }
}

#include "cpu_product.h"

#undef SWAP
#undef READ
#undef WRITE
#undef RUN
#undef RUN_NAME
#undef READ_VALID
#undef WRITE_VALID
#undef AHEAD
#undef CENTRE
#undef COLUMNS
#undef FUSE
#undef SKETCH_NAME
#undef MEDIAN_NAME
#undef PRODUCT
#undef PRODUCT_NAME
#undef LOOSE
#undef RUN_MAX
#undef RUNS
#undef BITONIC
#undef OTHER
#undef FUSED
#undef NAME
#undef T
#undef V
#undef VLEN
#undef VMIN
#undef VMAX
#undef FMA
#undef SPLAT
#undef VSUM
#undef MASK
#undef CHOOSE
#undef ALL
#undef ADD_UP_TO
#undef ANY
#undef LOOK_UP
#undef LEAST_BEYOND
#undef REPLACE_BITS
