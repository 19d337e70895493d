/* The passes over the stack for one instruction set and one compute type; cpu.c includes this file once for each.

   It wants from the includer: T (float or double), V (a vector of VLEN of them), NAME(x) (x with a suffix of its own), VMIN,
   VMAX, FMA, SPLAT, VSUM on vectors, BLOCK (Gram blocks are BLOCK x BLOCK accumulators: as many as there are registers),
   and HALVES, which widens float16 to float32.

   Columns are taken a tile at a time: the rows are copied (converted, gathered, mixed) into a compact tile that stays in
   cache, so that rows a power of two apart do not fight for the same cache sets. Columns past d are zeros in the tile: they
   add nothing to any sum. */

typedef V NAME(loose) __attribute__((aligned(sizeof(T)))); /* the same vector at any address */
#define LOOSE NAME(loose)
#ifndef OTHER
#define OTHER(a, b, least) VMAX(a, b)
#endif

/* `count` elements of a vector, from element `at` on, into dst; zeros behind them up to `width`. */
static void NAME(load)(T *restrict dst, const struct row *row, int64_t at, int64_t count, int64_t width)
{
    const int64_t step = row->stride;
#define COPY(type, convert)                                                                                            \
    do {                                                                                                               \
        const type *restrict src = (const type *)row->data + at * step;                                               \
        if (step == 1)                                                                                                 \
            for (int64_t k = 0; k < count; k++) dst[k] = (T)convert(src[k]);                                           \
        else                                                                                                           \
            for (int64_t k = 0; k < count; k++) dst[k] = (T)convert(src[k * step]);                                    \
    } while (0)
    if (row->data == NULL) count = 0; /* the origin */
    else if (row->dtype == FLOAT32) COPY(float, );
    else if (row->dtype == FLOAT64) COPY(double, );
    else if (row->dtype == BFLOAT16) COPY(uint16_t, bfloat);
    else {
        uint16_t half[64];
        float wide[64];
        const uint16_t *src = (const uint16_t *)row->data + at * step;
        for (int64_t k = 0; k < count; k += 64) {
            const int64_t some = count - k < 64 ? count - k : 64;
            for (int64_t l = 0; l < 64; l++) half[l] = l < some ? src[(k + l) * step] : 0;
            HALVES(wide, half);
            for (int64_t l = 0; l < some; l++) dst[k + l] = (T)wide[l];
        }
    }
#undef COPY
    memset(dst + count, 0, (size_t)(width - count) * sizeof(T));
}

/* Sorting n <= 32 vectors lane by lane, in registers. The network is that for 32 wires without the comparators that touch a
   wire >= n: were those wires +inf, they would never move. n is a constant in each of the functions made from this, so the
   compiler also leaves out what a result does not need. */
#define SWAP(i, j)                                                                                                     \
    if ((j) < n) {                                                                                                     \
        const V least = VMIN(s[i], s[j]);                                                                              \
        s[j] = OTHER(s[i], s[j], least);                                                                               \
        s[i] = least;                                                                                                  \
    }
#define READ(i) if ((i) < n) s[i] = *(const LOOSE *)(from[i] + at);
#define WRITE(i) if ((i) < n) out[i] = s[i];
/* The next tile comes from memory while this one is worked on; rows < SPARED come during the Gram products. */
#define AHEAD(i) if ((i) < n && (i) >= SPARED) __builtin_prefetch(ahead[i] + v * step, 0, 3);

/* Sorted vectors to `out`. */
#define RUN(n_)                                                                                                        \
    static void NAME(run_##n_)(const T *const *from, ptrdiff_t at, V *out)                                             \
    {                                                                                                                  \
        enum { n = n_ };                                                                                               \
        V s[RUN_MAX];                                                                                                  \
        EACH(READ) SORT32(0) EACH(WRITE)                                                                               \
    }
EACH_FROM_1(RUN)
#define RUN_NAME(n_) NAME(run_##n_),
static void (*const NAME(run)[])(const T *const *, ptrdiff_t, V *) = {NULL, EACH_FROM_1(RUN_NAME)};

/* The last layers of a bitonic merge, those inside a block of 32; only the first `valid` are there, the others count as +inf.
   With `across` set, the first layer of a merge of two runs of 32 comes before them: wire i meets wire 63 - i of the next run. */
static inline __attribute__((always_inline)) void NAME(settle)(V *out, ptrdiff_t valid, const int across)
{
    enum { n = RUN_MAX };
    V s[RUN_MAX];
#define READ_VALID(i)                                                                                                  \
    s[i] = (i) < valid ? out[i] : SPLAT((T)INFINITY);                                                                  \
    if (across && 2 * RUN_MAX - 1 - (i) < valid) {                                                                     \
        V *far = out + 2 * RUN_MAX - 1 - (i);                                                                          \
        const V least = VMIN(s[i], *far);                                                                              \
        *far = OTHER(s[i], *far, least);                                                                               \
        s[i] = least;                                                                                                  \
    }
#define WRITE_VALID(i) if ((i) < valid) out[i] = s[i];
    EACH(READ_VALID) BITONIC32 EACH(WRITE_VALID)
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

/* Sort n vectors lane by lane into s: runs of 32 in registers, then bitonic merges of runs. */
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
static inline __attribute__((always_inline)) V NAME(centre)(const V *s, const ptrdiff_t n, V *mad)
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
/* The same for a whole tile with nothing but the results leaving the registers. */
#define CENTRE(i) if ((i) < n) y[(i) * pitch + v] = *(const LOOSE *)(from[i] + at) - centre[v];
#define SKETCHED(n_)                                                                                                   \
    static void NAME(sketched_##n_)(const T *const *from, const char *const *ahead, ptrdiff_t step, ptrdiff_t count,   \
                                    V *centre, V *mad, V *y, ptrdiff_t pitch)                                          \
    {                                                                                                                  \
        enum { n = n_, SPARED = ((n_ + BLOCK - 1) / BLOCK) * ((n_ + BLOCK - 1) / BLOCK + 1) / 2 };                       \
        for (ptrdiff_t v = 0, at = 0; v < count; v++, at += VLEN) {                                                    \
            V s[RUN_MAX];                                                                                              \
            EACH(READ) EACH(AHEAD) SORT32(0)                                                                           \
            centre[v] = NAME(centre)(s, n,      mad + v);                                                              \
            EACH(CENTRE)                                                                                               \
        }                                                                                                              \
    }
#define SKETCHED_NAME(n_) NAME(sketched_##n_),
EACH_FROM_1(SKETCHED)
static void (*const NAME(sketched)[])(const T *const *, const char *const *, ptrdiff_t, ptrdiff_t, V *, V *, V *, ptrdiff_t) = {
    NULL, EACH_FROM_1(SKETCHED_NAME)};

#define MEDIAN(n_)                                                                                                     \
    static void NAME(median_##n_)(const T *const *from, const char *const *ahead, ptrdiff_t step, ptrdiff_t count, V *centre) \
    {                                                                                                                  \
        enum { n = n_, SPARED = 0 };                                                                                   \
        for (ptrdiff_t v = 0, at = 0; v < count; v++, at += VLEN) {                                                    \
            V s[RUN_MAX];                                                                                              \
            V unused;                                                                                                  \
            EACH(READ) EACH(AHEAD) SORT32(0)                                                                           \
            centre[v] = NAME(centre)(s, n,      &unused);                                                              \
        }                                                                                                              \
    }
#define MEDIAN_NAME(n_) NAME(median_##n_),
EACH_FROM_1(MEDIAN)
static void (*const NAME(median)[])(const T *const *, const char *const *, ptrdiff_t, ptrdiff_t, V *) = {NULL, EACH_FROM_1(MEDIAN_NAME)};
#endif

/* The products of R rows at a with C rows at b, added lane by lane; the lower half of a diagonal block is left out. */
static inline __attribute__((always_inline)) void
NAME(block)(const int R, const int C, const int diagonal, const V *a, const V *b, ptrdiff_t pitch, ptrdiff_t count, V *sums, const char *ahead, ptrdiff_t step)
{
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
    static void NAME(block_##R##C)(const V *a, const V *b, ptrdiff_t pitch, ptrdiff_t count, V *sums, const char *ahead, ptrdiff_t step) \
    {                                                                                                                  \
        if (R == C && a == b) NAME(block)(R, C, 1, a, b, pitch, count, sums, ahead, step);                             \
        else NAME(block)(R, C, 0, a, b, pitch, count, sums, ahead, step);                                              \
    }
#define PRODUCT_NAME(R, C) NAME(block_##R##C),
BLOCKS(PRODUCT)
static void (*const NAME(product)[])(const V *, const V *, ptrdiff_t, ptrdiff_t, V *, const char *, ptrdiff_t) = {BLOCKS(PRODUCT_NAME)};

/* For each pair of blocks I <= J of the rows: add the tile's products to the vectors `sums`, or, at a flush, the vectors to the
   float64 matrix. Blocks are of nearly equal size, so that few registers idle. */
static void NAME(gram)(const V *x, ptrdiff_t pitch, ptrdiff_t count, ptrdiff_t size, V *sums, double *flush, const char *const *ahead, ptrdiff_t n, ptrdiff_t step)
{
    const ptrdiff_t blocks = (size + BLOCK - 1) / BLOCK;
    ptrdiff_t pair = 0;
    for (ptrdiff_t I = 0; I < blocks; I++) {
        const ptrdiff_t i0 = I * size / blocks, i1 = (I + 1) * size / blocks;
        for (ptrdiff_t J = I; J < blocks; J++, sums += BLOCK * BLOCK) {
            const ptrdiff_t j0 = J * size / blocks, j1 = (J + 1) * size / blocks;
            if (flush == NULL) {
                NAME(product)[(i1 - i0 - 1) * BLOCK + j1 - j0 - 1](x + i0 * pitch, x + j0 * pitch, pitch, count, sums, ahead[pair % n], step);
                pair++;
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

/* Rows of `mix` times x into y. Eight vectors of columns at a time, so that what is read again and again stays in the nearest
   cache; zero coefficients are not stored in the list, so sparse matrices cost what they hold. */
static void NAME(mix)(const struct term *terms, const int64_t *ends, ptrdiff_t m, const V *x, V *y, ptrdiff_t pitch, ptrdiff_t count)
{
    for (ptrdiff_t v = 0; v < count; v += WIDE) {
        const struct term *term = terms;
        for (ptrdiff_t i = 0; i < m; i++) {
            V sum[WIDE];
            _Pragma("GCC unroll 8") for (int k = 0; k < WIDE; k++) sum[k] = SPLAT((T)0);
            for (; term < terms + ends[i]; term++) {
                const V *source = x + term->row * pitch + v, c = SPLAT((T)term->weight);
                _Pragma("GCC unroll 8") for (int k = 0; k < WIDE; k++) sum[k] = FMA(source[k], c, sum[k]);
            }
            _Pragma("GCC unroll 8") for (int k = 0; k < WIDE; k++) y[i * pitch + v + k] = sum[k];
        }
    }
}

/* Scratch bytes of one thread. */
static size_t NAME(scratch)(const struct plan *p)
{
    const size_t blocks = (size_t)(p->size + BLOCK - 1) / BLOCK;
    const size_t rows = (size_t)(p->mixed ? p->n : 0) + (size_t)p->size + 2;
    return rows * ((size_t)p->tile * sizeof(T) + LINE) + ((size_t)p->m + blocks * (blocks + 1) / 2 * BLOCK * BLOCK) * sizeof(V) +
           (size_t)(p->m + p->n) * sizeof(void *);
}

/* Columns begin..end of sketch or trim: the median or trimmed mean to p->value, and this chunk's own sums to `sums`. */
static void NAME(sorted)(const struct plan *p, int64_t begin, int64_t end, void *scratch, struct sums *sums)
{
    const ptrdiff_t n = p->n, m = p->m, size = p->size, blocks = (size + BLOCK - 1) / BLOCK;
    const ptrdiff_t pitch = (ptrdiff_t)(p->tile * (int64_t)sizeof(T) + LINE) / (ptrdiff_t)sizeof(V);
    V *y = scratch, *raw = p->mixed ? y + size * pitch : y, *centre = raw + (p->mixed ? n : size) * pitch, *mad = centre + pitch;
    V *s = mad + pitch, *lanes = s + m, trouble[4] = {SPLAT((T)0), SPLAT((T)0), SPLAT((T)0), SPLAT((T)0)};
    const T **from = (const T **)(lanes + blocks * (blocks + 1) / 2 * BLOCK * BLOCK);
    const char **ahead = (const char **)(from + m);
    const int median = p->op == TRIM && p->lo == (m - 1) / 2 && p->hi == m / 2 + 1;
    double spread[8] = {0};
    int since = 0;
    memset(lanes, 0, (size_t)(blocks * (blocks + 1) / 2 * BLOCK * BLOCK) * sizeof(V));
    for (int64_t at = begin; at < end; at += p->tile) {
        const int64_t some = end - at < p->tile ? end - at : p->tile;
        const ptrdiff_t count = (some + VLEN * WIDE - 1) / (VLEN * WIDE) * WIDE;
        const int direct = p->direct && some == p->tile;
        for (ptrdiff_t i = 0; i < n; i++) {
            const struct row *row = p->rows + i;
            const T *where = (const T *)row->data + at;
            if (!direct) NAME(load)((T *)(raw + i * pitch), row, at, some, count * VLEN), where = (const T *)(raw + i * pitch);
            if (!p->mixed) from[i] = where;
            ahead[i] = (const char *)row->data + (at + p->tile) * row->stride * row->bytes;
            if (p->op == TRIM)
                for (ptrdiff_t v = 0; v < count; v += 4)
                    _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)
                        trouble[k] = FMA(*(const LOOSE *)(where + (v + k) * VLEN), SPLAT((T)0), trouble[k]);
        }
        if (p->mixed) {
            NAME(mix)(p->terms, p->ends, m, raw, y, pitch, count);
            for (ptrdiff_t i = 0; i < m; i++) from[i] = (const T *)(y + i * pitch);
        }
        const ptrdiff_t step = VLEN * p->rows->bytes;
#ifdef FUSED
        if (m <= RUN_MAX && p->op == SKETCH) NAME(sketched)[m](from, ahead, step, count, centre, mad, y, pitch);
        else if (m <= RUN_MAX && median) NAME(median)[m](from, ahead, step, count, centre);
        else
#endif
        for (ptrdiff_t v = 0; v < count; v++) {
            for (ptrdiff_t i = p->op == SKETCH ? blocks * (blocks + 1) / 2 : 0; i < n; i++) __builtin_prefetch(ahead[i] + v * step, 0, 3);
            NAME(sort)(from, v * VLEN, m, s);
            if (p->op == TRIM) {
                centre[v] = median ? NAME(centre)(s, m, mad) : NAME(range)(s, p->lo, p->hi);
                continue;
            }
            centre[v] = NAME(centre)(s, m, mad + v);
            for (ptrdiff_t i = 0; i < m; i++) y[i * pitch + v] = *(const LOOSE *)(from[i] + v * VLEN) - centre[v];
        }
        memcpy((T *)p->value + at, centre, (size_t)some * sizeof(T));
        if (p->op == TRIM) continue;
        for (ptrdiff_t k = 0; k < count * VLEN; k += 8)
            for (int l = 0; l < 8; l++) spread[l] += (double)((T *)mad)[k + l] * (double)((T *)mad)[k + l];
        for (ptrdiff_t i = m; i < size; i++) {
            NAME(load)((T *)(y + i * pitch), p->rows + n + i - m, at, some, count * VLEN);
            for (ptrdiff_t v = 0; v < count; v++) y[i * pitch + v] = y[i * pitch + v] - centre[v];
        }
        NAME(gram)(y, pitch, count, size, lanes, NULL, ahead, n, step);
        if (++since == FLUSH || at + some == end) NAME(gram)(y, pitch, count, size, lanes, sums->gram, ahead, n, step), since = 0;
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
                if (row->stride == 1 && row->bytes == sizeof(T) && some == count * VLEN)
                    source[k] = (const LOOSE *)((const T *)row->data + at);
                else {
                    V *copy = sum + (k + 1) * pitch;
                    NAME(load)((T *)copy, row, at, some, count * VLEN);
                    source[k] = (const LOOSE *)copy;
                }
            }
            for (ptrdiff_t v = 0; v < count; v++)
                sum[v] = FMA(source[3][v], c[3], FMA(source[2][v], c[2], FMA(source[1][v], c[1], FMA(source[0][v], c[0], sum[v]))));
        }
        for (ptrdiff_t v = 0; v < count; v++) trouble = FMA(sum[v], SPLAT((T)0), trouble);
        memcpy((T *)p->value + at, sum, (size_t)some * sizeof(T));
    }
    sums->alarm = !(VSUM(trouble) == 0);
}

#undef SWAP
#undef READ
#undef WRITE
#undef AHEAD
#undef RUN
#undef RUN_NAME
#undef READ_VALID
#undef WRITE_VALID
#undef CENTRE
#undef SKETCHED
#undef SKETCHED_NAME
#undef MEDIAN
#undef MEDIAN_NAME
#undef PRODUCT
#undef PRODUCT_NAME
#undef LOOSE
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
