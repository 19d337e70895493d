/* The passes over the stack on a CPU: see reference.py for what they compute, and cpu.py for who calls them.

   One library holds the passes for AVX512, AVX2 and any other CPU, and picks at run time: cpu_passes.h is included once
   for each instruction set and compute type. Build it without -ffast-math: NaN and Inf must show in the results. */

#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ABI = 8 };                                                /* cpu.py loads no library with another number */
enum { SKETCH, TRIM, COMBINE, SHARES, MEASURE, SPREAD };         /* op */
enum { FLOAT32, FLOAT64, FLOAT16, BFLOAT16 };                    /* dtype */
enum { PLAIN, AVX2, AVX512 };                                    /* isa */
enum { LINE = 64, TILE_BYTES = 1 << 18, WIDE = 8, FLUSH = 8, CHUNKS = 64 };
enum { FEW = 160, MANY = 512 }; /* rows up to which sorting is faster than looking for a median, or for more than that */

struct row {
    const void *data; /* NULL: the origin */
    int64_t stride;   /* in elements */
    int32_t dtype, bytes;
};

/* What is asked; cpu.py has the same structure. */
struct job {
    int32_t op, isa, wide, threads;
    int64_t n, m, anchors, d, lo, hi; /* m rows after mixing, else m = n; `anchors` rows follow the n */
    const int64_t *votes;             /* sketch, trim, shares: (m,), lo and hi then number copies; or NULL */
    const struct row *rows;
    const double *weights; /* sketch, trim, shares: the (m, n) mix or NULL; combine: n coefficients, none of them 0 */
    void *value;           /* sketch, trim, combine: (d,) in the compute type */
    double *spread, *gram; /* sketch: (1,) and (m + anchors, m + anchors); shares: (m,); measure: (n,) */
    uint8_t *alarm;
    /* OpenMP's GOMP_parallel in this process, or NULL: calls a function with its argument in so many threads. */
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
    double floor; /* sketch: of the squared MADs, where columns are divided by their roots; or -1 */
};

struct term { /* what a pair of mixed rows takes of one row */
    int64_t row;
    int32_t who; /* 1: the first of the pair, 2: the second, 3: both */
    double weight[2];
};

struct rank { /* a copy among all that the votes stand for, and the sorted positions which can have it */
    int64_t number, first, last;
};

struct sums { /* of one chunk of columns */
    double spread, *gram;
    int alarm;
};

static const struct row origin = {NULL, 1, FLOAT32, 0};

#include "cpu_many.h"

struct plan {
    int op, mixed, direct, even; /* direct: rows are used where they lie; even: a mixed row has one weight */
    int64_t n, m, size, lo, hi, d, tile, chunk;
    const struct row *rows;
    const double *weights;
    const int64_t *votes;
    struct rank low, high; /* with votes: the ends of the range that is averaged, both included */
    int64_t total;         /* of the votes */
    double floor;
    void *value;
    struct term *terms; /* those of the mixed rows 2k and 2k + 1 end at terms + ends[k] */
    int64_t *ends;
    double *scale; /* even: the weight of each mixed row */
    struct sums *sums;
    void (*pass)(const struct plan *, int64_t, int64_t, void *, struct sums *);
    int64_t chunks;
    char *scratch; /* `own` bytes for each seat: more threads than that find no work */
    size_t own;
    int64_t seats;
    atomic_long *next, *taken;
    fenv_t rounding; /* whose arithmetic is asked for: the caller may flush denormals */
};

static inline float bfloat(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* float16 by moving its fields into place: the product mends the exponent's bias, and makes subnormals normal. */
static inline float half(uint16_t bits)
{
    uint32_t wide = (uint32_t)(bits & 0x7fff) << 13;
    float value;
    memcpy(&value, &wide, sizeof value);
    value *= 0x1p112f;
    memcpy(&wide, &value, sizeof value);
    wide |= ((bits & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u) | (uint32_t)(bits & 0x8000) << 16;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Batcher's odd-even merge sort of 32 wires, from merges of sorted halves; r is the distance between neighbours. */
#define MERGE4(a, r) SWAP(a, a + 2 * r) SWAP(a + r, a + 3 * r) SWAP(a + r, a + 2 * r)
#define MERGE8(a, r) MERGE4(a, 2 * r) MERGE4(a + r, 2 * r) ODD3(a + r, r)
#define MERGE16(a, r)                                                                                                  \
    MERGE8(a, 2 * r) MERGE8(a + r, 2 * r) ODD3(a + r, r) SWAP(a + 7 * r, a + 8 * r) ODD3(a + 9 * r, r)
#define MERGE32(a, r)                                                                                                  \
    MERGE16(a, 2 * r) MERGE16(a + r, 2 * r) ODD3(a + r, r) ODD3(a + 7 * r, r) ODD3(a + 13 * r, r) ODD3(a + 19 * r, r)  \
    ODD3(a + 25 * r, r)
#define ODD3(a, r) SWAP(a, a + r) SWAP(a + 2 * r, a + 3 * r) SWAP(a + 4 * r, a + 5 * r)
#define SORT4(a) SWAP(a, a + 1) SWAP(a + 2, a + 3) WITH(a + 2, MERGE4(a, 1))
#define SORT8(a) SORT4(a) SORT4(a + 4) WITH(a + 4, MERGE8(a, 1))
#define SORT16(a) SORT8(a) SORT8(a + 8) WITH(a + 8, MERGE16(a, 1))
#define SORT32(a) SORT16(a) SORT16(a + 16) WITH(a + 16, MERGE32(a, 1))
#define WITH(wire, merge) if ((wire) < n) { merge } /* a half that is not there needs no merging */

/* The last layers of a bitonic merge: wires 8, 4, 2, 1 apart. */
#define CLEAN2(a) SWAP(a, a + 1)
#define CLEAN4(a) SWAP(a, a + 2) SWAP(a + 1, a + 3) CLEAN2(a) CLEAN2(a + 2)
#define APART4(a, r) SWAP(a, a + r) SWAP(a + 1, a + 1 + r) SWAP(a + 2, a + 2 + r) SWAP(a + 3, a + 3 + r)
#define CLEAN8(a) APART4(a, 4) CLEAN4(a) CLEAN4(a + 4)
#define CLEAN16(a) APART4(a, 8) APART4(a + 4, 8) CLEAN8(a) CLEAN8(a + 8)

#define UP_TO_16(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16)
#define UP_TO_32(F) F(17) F(18) F(19) F(20) F(21) F(22) F(23) F(24) F(25) F(26) F(27) F(28) F(29) F(30) F(31) F(32)
#define EACH(F) /* wire */                                                                                             \
    F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16) F(17) F(18) F(19)      \
    F(20) F(21) F(22) F(23) F(24) F(25) F(26) F(27) F(28) F(29) F(30) F(31)
#define BLOCKS3(F) F(1, 1) F(1, 2) F(1, 3) F(2, 1) F(2, 2) F(2, 3) F(3, 1) F(3, 2) F(3, 3)
#define BLOCKS5(F)                                                                                                     \
    F(1, 1) F(1, 2) F(1, 3) F(1, 4) F(1, 5) F(2, 1) F(2, 2) F(2, 3) F(2, 4) F(2, 5) F(3, 1) F(3, 2) F(3, 3) F(3, 4)    \
    F(3, 5) F(4, 1) F(4, 2) F(4, 3) F(4, 4) F(4, 5) F(5, 1) F(5, 2) F(5, 3) F(5, 4) F(5, 5)

#if defined(__x86_64__) && defined(__GNUC__)
#define X86 1
#include <immintrin.h>
#define PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define TARGET_BEGIN(features) PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define TARGET_END _Pragma("clang attribute pop")
#else
#define TARGET_BEGIN(features) _Pragma("GCC push_options") PRAGMA(GCC target(features))
#define TARGET_END _Pragma("GCC pop_options")
#endif

#define BLOCK 5
#define BLOCKS BLOCKS5
TARGET_BEGIN("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c")
static void halves_avx512(float *to, const uint16_t *from)
{
    for (int k = 0; k < 64; k += 16)
        _mm512_storeu_ps(to + k, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + k))));
}
#define HALVES halves_avx512
/* a ^ b ^ least is the greater one, from units that would idle while others take minima. */
static inline __m512 other_ps(__m512 a, __m512 b, __m512 least)
{
    const __m512i i = _mm512_castps_si512(a), j = _mm512_castps_si512(b), k = _mm512_castps_si512(least);
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(i, j, k, 0x96));
}
static inline __m512d other_pd(__m512d a, __m512d b, __m512d least)
{
    const __m512i i = _mm512_castpd_si512(a), j = _mm512_castpd_si512(b), k = _mm512_castpd_si512(least);
    return _mm512_castsi512_pd(_mm512_ternarylogic_epi64(i, j, k, 0x96));
}
/* The votes of the rows that the last bits of the keys number. */
static inline __attribute__((always_inline)) __m512i look_up_votes(const int32_t *votes, __m512 numbered, const ptrdiff_t n)
{
    const __m512i at = _mm512_castps_si512(numbered), *const v = (const __m512i *)votes;
#define FROM(k) _mm512_permutex2var_epi32(_mm512_loadu_si512(v + (k)), at, _mm512_loadu_si512(v + (k) + 1))
    return n <= 32 ? FROM(0) : _mm512_mask_mov_epi32(FROM(0), _mm512_test_epi32_mask(at, _mm512_set1_epi32(32)), FROM(2));
#undef FROM
}

#define NAME(x) x##_avx512_float
#define FUSED
#define T float
#define V __m512
#define VLEN 16
#define VMIN _mm512_min_ps
#define VMAX _mm512_max_ps
#define OTHER other_ps
#define ADD_UP_TO(sum, a, b, votes)                                                                                    \
    (MASK)_mm512_mask_add_epi32((__m512i)(sum), _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ), (__m512i)(sum), (__m512i)(votes))
#define ANY(mask) (_mm512_test_epi32_mask((__m512i)(mask), (__m512i)(mask)) != 0)
#define LOOK_UP look_up_votes
#define LEAST_BEYOND(least, x, bound, with)                                                                            \
    _mm512_mask_min_ps(least, _mm512_cmp_ps_mask(x, bound, with ? _CMP_GE_OQ : _CMP_GT_OQ), least, x)
#define REPLACE_BITS(x, mask, bits)                                                                                    \
    _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_castps_si512(x), (__m512i)(mask), (__m512i)(bits), 0xba))
#define FMA _mm512_fmadd_ps
#define SPLAT _mm512_set1_ps
#define VSUM _mm512_reduce_add_ps
#include "cpu_passes.h"

#define NAME(x) x##_avx512_double
#define T double
#define V __m512d
#define VLEN 8
#define VMIN _mm512_min_pd
#define VMAX _mm512_max_pd
#define OTHER other_pd
#define ADD_UP_TO(sum, a, b, votes)                                                                                    \
    (MASK)_mm512_mask_add_epi64((__m512i)(sum), _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ), (__m512i)(sum), (__m512i)(votes))
#define FMA _mm512_fmadd_pd
#define SPLAT _mm512_set1_pd
#define VSUM _mm512_reduce_add_pd
#include "cpu_passes.h"
TARGET_END
#undef BLOCK
#undef BLOCKS
#undef HALVES

#define BLOCK 3
#define BLOCKS BLOCKS3
TARGET_BEGIN("avx2,fma,f16c")
static void halves_avx2(float *to, const uint16_t *from)
{
    for (int k = 0; k < 64; k += 8)
        _mm256_storeu_ps(to + k, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + k))));
}
#define HALVES halves_avx2

#define NAME(x) x##_avx2_float
#define FUSED
#define T float
#define V __m256
#define VLEN 8
#define VMIN _mm256_min_ps
#define VMAX _mm256_max_ps
#define FMA _mm256_fmadd_ps
#define SPLAT _mm256_set1_ps
#define VSUM(v) (((v)[0] + (v)[1]) + ((v)[2] + (v)[3]) + (((v)[4] + (v)[5]) + ((v)[6] + (v)[7])))
#include "cpu_passes.h"

#define NAME(x) x##_avx2_double
#define T double
#define V __m256d
#define VLEN 4
#define VMIN _mm256_min_pd
#define VMAX _mm256_max_pd
#define FMA _mm256_fmadd_pd
#define SPLAT _mm256_set1_pd
#define VSUM(v) (((v)[0] + (v)[1]) + ((v)[2] + (v)[3]))
#include "cpu_passes.h"
TARGET_END
#undef BLOCK
#undef BLOCKS
#undef HALVES
#endif

/* Any other CPU: the compiler's own vectors of 16 bytes. */
#define BLOCK 3
#define BLOCKS BLOCKS3
static void halves_plain(float *to, const uint16_t *from)
{
    for (int k = 0; k < 64; k++) to[k] = half(from[k]);
}
#define HALVES halves_plain

typedef float float4 __attribute__((vector_size(16), may_alias));
typedef int32_t int4 __attribute__((vector_size(16), may_alias));
typedef double double2 __attribute__((vector_size(16), may_alias));
typedef int64_t long2 __attribute__((vector_size(16), may_alias));
#define SELECT(name, V, I, compare)                                                                                   \
    static inline V name(V a, V b)                                                                                     \
    {                                                                                                                  \
        const I first = a compare b;                                                                                   \
        return (V)(((I)a & first) | ((I)b & ~first));                                                                  \
    }
SELECT(min4, float4, int4, <)
SELECT(max4, float4, int4, >)
SELECT(min2, double2, long2, <)
SELECT(max2, double2, long2, >)

#define NAME(x) x##_plain_float
#define FMA(a, b, c) ((a) * (b) + (c))
#define T float
#define V float4
#define VLEN 4
#define VMIN min4
#define VMAX max4
#define SPLAT(c) ((V){(c), (c), (c), (c)})
#define VSUM(v) (((v)[0] + (v)[1]) + ((v)[2] + (v)[3]))
#include "cpu_passes.h"

#define NAME(x) x##_plain_double
#define FMA(a, b, c) ((a) * (b) + (c))
#define T double
#define V double2
#define VLEN 2
#define VMIN min2
#define VMAX max2
#define SPLAT(c) ((V){(c), (c)})
#define VSUM(v) ((v)[0] + (v)[1])
#include "cpu_passes.h"

struct passes {
    size_t (*scratch)(const struct plan *);
    void (*sorted)(const struct plan *, int64_t, int64_t, void *, struct sums *);
    void (*combine)(const struct plan *, int64_t, int64_t, void *, struct sums *);
    void (*measure)(const struct plan *, int64_t, int64_t, void *, struct sums *);
    void (*multiply)(const struct product *, int64_t, int64_t, int64_t, int64_t, int64_t, void *);
    void (*project)(const struct projection *, int64_t, int64_t, void *);
    void (*nearest)(const struct nearest *, int64_t, void *);
    int64_t lanes;
};
#define OF(type)                                                                                                       \
    {scratch_##type, sorted_##type, combine_##type, measure_##type, multiply_##type, project_##type, nearest_##type,  \
     lanes_##type}
#define PASSES(isa) {OF(isa##_float), OF(isa##_double)}
static const struct passes all[][2] = {
    PASSES(plain),
#ifdef X86
    PASSES(avx2), PASSES(avx512),
#endif
};

__attribute__((visibility("default"))) int robagg_abi(void) { return ABI; }

/* The best instruction set this machine has. */
__attribute__((visibility("default"))) int robagg_isa(void)
{
#ifdef X86
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return PLAIN;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return AVX512;
    return AVX2;
#else
    return PLAIN;
#endif
}

/* Chunks are dealt to whoever is free. Each has sums of its own, so who took it leaves no trace in the result. */
static void work(void *argument)
{
    struct plan *const p = argument;
    const int64_t seat = atomic_fetch_add(p->taken, 1);
    if (seat >= p->seats) return;
    void *const scratch = p->scratch + (size_t)seat * p->own;
    fenv_t before;
    fegetenv(&before);
    fesetenv(&p->rounding);
#ifdef X86
    /* Sorting must not take subnormal numbers for zeros: OTHER and the row numbers of cpu_votes.h count on every bit. What is
       computed is flushed as before. */
    if (p->op != COMBINE && p->op != MEASURE) _mm_setcsr(_mm_getcsr() & ~(unsigned)_MM_DENORMALS_ZERO_MASK);
#endif
    for (;;) {
        int64_t chunk = atomic_fetch_add(p->next, 1);
        if (chunk >= p->chunks) break;
        if (p->op == COMBINE) chunk = p->chunks - 1 - chunk; /* the columns a sketch saw last are still in cache */
        const int64_t begin = chunk * p->chunk, end = begin + p->chunk < p->d ? begin + p->chunk : p->d;
        p->pass(p, begin, end, scratch, p->sums + chunk);
    }
    fesetenv(&before);
}

static void *work_alone(void *plan)
{
    work(plan);
    return NULL;
}

/* The mix as a list of its non-zeros. A row that no mixed row uses joins the first with weight 0: should it not be
   finite, that shows. */
static void list_terms(struct plan *p)
{
    struct term *term = p->terms;
    p->even = 1;
    for (int64_t i = 0; i < p->m; i++) p->scale[i] = 0;
    for (int64_t i = 0; i < p->m; i += 2) {
        for (int64_t j = 0; j < p->n; j++) {
            struct term it = {.row = j};
            for (int64_t k = i; k < p->m && k < i + 2; k++) {
                const double weight = it.weight[k - i] = p->weights[k * p->n + j];
                if (weight == 0) continue;
                it.who |= 1 << (k - i);
                p->even &= p->scale[k] == 0 || p->scale[k] == weight;
                p->scale[k] = weight;
            }
            if (i == 0 && !it.who) {
                it.who = 1;
                for (int64_t k = 0; k < p->m; k++)
                    if (p->weights[k * p->n + j] != 0) it.who = 0;
                p->even &= !it.who;
            }
            if (it.who) *term++ = it;
        }
        p->ends[i / 2] = term - p->terms;
    }
}

static int compare_votes(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of rows with votes, the sorted positions that can have a copy: from where the heaviest rows come first to where the lightest do. */
static struct rank find_rank(const int64_t *ascending, int64_t m, int64_t number)
{
    struct rank rank = {number, 0, 0};
    for (int64_t sum = ascending[m - 1]; sum <= number && rank.first < m - 1; sum += ascending[m - 1 - rank.first])
        rank.first++;
    for (int64_t sum = ascending[0]; sum <= number && rank.last < m - 1; sum += ascending[rank.last]) rank.last++;
    return rank;
}

/* The ends of the range of copies; those of a sketch are in the middle. 1 where there was no memory. */
static int rank_votes(struct plan *p)
{
    const int middle = p->op == SKETCH || p->op == SPREAD;
    int64_t *const ascending = malloc((size_t)p->m * sizeof *ascending), voters = 0;
    if (ascending == NULL) return 1;
    for (int64_t i = 0; i < p->m; i++) {
        p->total += p->votes[i];
        if (p->votes[i]) ascending[voters++] = p->votes[i];
    }
    qsort(ascending, (size_t)voters, sizeof *ascending, compare_votes);
    p->low = find_rank(ascending, voters, middle ? (p->total - 1) / 2 : p->lo);
    p->high = find_rank(ascending, voters, middle ? p->total / 2 : p->hi - 1);
    free(ascending);
    return 0;
}

/* Do the job; 0, or 1 where there was no memory for it. */
__attribute__((visibility("default"))) int robagg_run(const struct job *job)
{
    const struct passes *passes = &all[job->isa][job->wide];
    const int sorts = job->op != COMBINE && job->op != MEASURE;
    const int64_t element = job->wide ? 8 : 4, size = sorts ? job->m + job->anchors : 0;
    atomic_long next = 0, taken = 0;
    struct plan p = {.op = job->op, .n = job->n, .m = job->m, .size = size, .lo = job->lo, .hi = job->hi, .d = job->d,
                     .rows = job->rows, .weights = job->weights, .votes = job->votes, .floor = job->floor, .value = job->value, .next = &next, .taken = &taken};
    if (p.votes != NULL && rank_votes(&p)) return 1;
    p.mixed = sorts && job->weights != NULL;
    p.pass = sorts ? passes->sorted : job->op == COMBINE ? passes->combine : passes->measure;

    /* Tiles and chunks do not depend on the threads. A tile and its next stay in the second cache. */
    p.tile = TILE_BYTES / (element * (size + 1)) / 128 * 128;
    p.tile = p.tile < 128 ? 128 : p.tile > 512 ? 512 : p.tile;
    if (!sorts) p.tile = 1024;
    int64_t most = job->op == SKETCH ? (1 << 22) / (size * size * 8) : CHUNKS;
    most = most > CHUNKS ? CHUNKS : most < 4 ? 4 : most;
    const int64_t tiles = (p.d + p.tile - 1) / p.tile;
    const int64_t least = 65536 / ((p.n + size + 1) * p.tile) + 1, share = (tiles + most - 1) / most;
    p.chunk = (share > least ? share : least) * p.tile;
    p.chunks = p.chunk ? (p.d + p.chunk - 1) / p.chunk : 0;

    /* Rows that need no converting are used where they lie, unless more of them share their place in a page than a
       cache has room for, as rows of 2^k columns do: copied one after the other they do not drive each other out. */
    int64_t together = 0;
    p.direct = 1;
    for (int64_t k = 0; k < p.n; k++) {
        p.direct &= p.rows[k].stride == 1 && p.rows[k].dtype == (job->wide ? FLOAT64 : FLOAT32);
        together += ((uintptr_t)p.rows[k].data - (uintptr_t)p.rows[0].data) % 4096 < LINE;
    }
    p.direct &= together <= 8;

    const int64_t threads = p.chunks < 2 || job->threads < 1 ? 1 : job->threads;
    p.seats = threads < p.chunks ? threads : p.chunks < 1 ? 1 : p.chunks;
    fegetenv(&p.rounding);
    const size_t own = sorts ? passes->scratch(&p) : 5 * ((size_t)p.tile * (size_t)element + LINE);
    p.own = (own / LINE + 1) * LINE;
    const int64_t counts[] = {[SKETCH] = size * size, [SHARES] = p.m, [MEASURE] = p.n, [SPREAD] = 0};
    const size_t gram = (size_t)counts[job->op];
    const size_t terms = p.mixed ? (size_t)(p.m * p.n) : 0;
    const size_t bytes = (size_t)p.seats * p.own + (size_t)p.chunks * (sizeof *p.sums + gram * sizeof(double)) +
                         terms * sizeof *p.terms + (size_t)p.m * (sizeof *p.ends + sizeof *p.scale) + 4 * LINE;
    void *block;
    if (posix_memalign(&block, LINE, bytes)) return 1;
    p.scratch = block;
    char *at = p.scratch + (size_t)p.seats * p.own;
    p.sums = (struct sums *)at, at += (size_t)p.chunks * sizeof *p.sums;
    p.terms = (struct term *)at, at += terms * sizeof *p.terms;
    p.ends = (int64_t *)at, at += (size_t)p.m * sizeof *p.ends;
    p.scale = (double *)at, at += (size_t)p.m * sizeof *p.scale;
    memset(at, 0, (size_t)p.chunks * gram * sizeof(double));
    for (int64_t k = 0; k < p.chunks; k++) p.sums[k] = (struct sums){0, (double *)at + (size_t)k * gram, 0};
    if (p.mixed) list_terms(&p);

    /* Torch's own threads where they can be had, as many as it uses itself: they are awake, and would else spin beside
       ours. Threads of our own live for one call; one that cannot start leaves its chunks to the rest. */
    if (threads > 1 && job->parallel != NULL) job->parallel(work, &p, (unsigned)threads, 0);
    else {
        pthread_t others[CHUNKS];
        int64_t started = 0;
        while (started + 1 < p.seats && !pthread_create(others + started, NULL, work_alone, &p)) started++;
        work(&p);
        for (int64_t k = 0; k < started; k++) pthread_join(others[k], NULL);
    }

    for (int64_t k = 0; k < p.chunks; k++) { /* in order, whoever came first */
        if (job->spread != NULL) *job->spread += p.sums[k].spread;
        if (job->alarm != NULL && p.sums[k].alarm) *job->alarm = 1;
        for (size_t i = 0; i < gram; i++) job->gram[i] += p.sums[k].gram[i];
    }
    if (job->op == SKETCH)
        for (int64_t i = 0; i < size; i++)
            for (int64_t j = 0; j < i; j++) job->gram[i * size + j] = job->gram[j * size + i];
    free(block);
    return 0;
}

#include "cpu_team.h"
#include "cpu_walk.h"

#define NAME(x) x##_plain
#include "cpu_filter.h"
#ifdef X86
TARGET_BEGIN("avx2")
#define NAME(x) x##_avx2
#include "cpu_filter.h"
TARGET_END
#endif

__attribute__((visibility("default"))) void robagg_filter(const struct filter *w)
{
#ifdef X86
    if (robagg_isa() != PLAIN) {
        filter_avx2(w);
        return;
    }
#endif
    filter_plain(w);
}
