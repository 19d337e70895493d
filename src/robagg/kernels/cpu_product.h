/* What passes over many rows are made of, for one compute type: products of all pairs of rows, panel by panel so that each is
   multiplied in cache, and projections of the rows onto few numbers. cpu.c includes this file after cpu_passes.h. */

/* `some` numbers of each row of a panel from column `at` on, less the centre, side by side in `to`. */
static void NAME(pack)(T *to, const struct row *rows, int64_t count, const T *centre, int64_t at, int64_t some,
                       int64_t width, ptrdiff_t pitch)
{
    for (int64_t i = 0; i < count; i++) {
        T *const row = to + i * pitch * VLEN;
        NAME(load)(row, rows + i, at, some, width);
        for (int64_t k = 0; centre != NULL && k < width; k += VLEN)
            *(V *)(row + k) = *(const V *)(row + k) - *(const V *)(centre + k);
    }
}

/* Adds the products of two panels in a range of columns to their part of the matrix. */
static void NAME(multiply)(const struct product *p, int64_t i0, int64_t i1, int64_t j0, int64_t j1, int64_t at, void *scratch)
{
    const ptrdiff_t pitch = (ptrdiff_t)((DEEP + LINE) / sizeof(V));
    const int64_t deep = DEEP / (int64_t)sizeof(T), some = p->d - at < deep ? p->d - at : deep, count = (some + VLEN - 1) / VLEN;
    V *const left = scratch, *const centre = left + 2 * PANEL * pitch;
    const int one = p->same && i0 == j0;
    V *const right = one ? left : left + PANEL * pitch;
    const T *const about = p->centre.data == NULL ? NULL : (const T *)centre;
    if (about != NULL) NAME(load)((T *)centre, &p->centre, at, some, count * VLEN);
    NAME(pack)((T *)left, p->left + i0, i1 - i0, about, at, some, count * VLEN, pitch);
    if (!one) NAME(pack)((T *)right, p->right + j0, j1 - j0, about, at, some, count * VLEN, pitch);
    const struct NAME(tile) tile = {.pitch = pitch, .count = count, .step = 0};
    for (int64_t i = i0; i < i1; i += BLOCK)
        for (int64_t j = one ? i : j0; j < j1; j += BLOCK) {
            const int64_t high = i1 - i < BLOCK ? i1 - i : BLOCK, wide = j1 - j < BLOCK ? j1 - j : BLOCK;
            const V *const a = left + (i - i0) * pitch, *const b = right + (j - j0) * pitch;
            V sums[BLOCK * BLOCK];
            for (int k = 0; k < BLOCK * BLOCK; k++) sums[k] = SPLAT((T)0);
            NAME(product)[(high - 1) * BLOCK + wide - 1](&tile, a, b, sums, (const char *)a);
            for (int64_t k = 0; k < high; k++)
                for (int64_t l = a == b ? k : 0; l < wide; l++)
                    p->out[(i + k) * p->n + j + l] += (double)VSUM(sums[k * BLOCK + l]);
        }
}

/* Adds each number of rows i0..i1-1, times its column's sign, to one of `k`: those of a block of k columns go to k places, turned
   by as much as its shift says. */
static void NAME(project)(const struct projection *p, int64_t i0, int64_t i1, void *scratch)
{
    const T *const signs = p->signs;
    T *const copy = scratch;
    for (int64_t i = i0; i < i1; i++) {
        const struct row *const row = p->rows + i;
        const int direct = row->stride == 1 && row->dtype == (sizeof(T) == 8 ? FLOAT64 : FLOAT32);
        T *const out = (T *)p->out + i * p->k;
        for (int64_t at = 0, block = 0; at < p->d; at += p->k, block++) {
            const int64_t some = p->d - at < p->k ? p->d - at : p->k, shift = p->shifts[block];
            if (!direct) NAME(load)(copy, row, at, some, some);
            const T *const from = direct ? (const T *)row->data + at : copy;
            for (int part = 0; part < 2; part++) { /* up to the last place, and on from the first */
                const int64_t begin = part ? p->k - shift : 0, end = part || some < p->k - shift ? some : p->k - shift;
                T *const to = part ? out - begin : out + shift;
                int64_t c = begin;
                for (; c + VLEN <= end; c += VLEN)
                    *(LOOSE *)(to + c) = FMA(*(const LOOSE *)(from + c), *(const LOOSE *)(signs + at + c), *(LOOSE *)(to + c));
                for (; c < end; c++) to[c] += from[c] * signs[at + c];
            }
        }
    }
}

enum { NAME(lanes) = VLEN };

/* The nearest rows of VLEN rows from i0 on, lane by lane; lanes past the last row repeat it. */
static void NAME(nearest)(const struct nearest *p, int64_t i0, void *scratch)
{
    const int64_t n = p->n, size = p->size, lanes = n - i0 < VLEN ? n - i0 : VLEN;
    const V zero = SPLAT((T)0), two = SPLAT((T)2), one = SPLAT((T)1);
    V *const squared = scratch;
    V own, low = SPLAT((T)INFINITY), high, sum = zero, fewer = zero;
    for (int64_t l = 0; l < VLEN; l++) own[l] = (T)p->gram[(i0 + (l < lanes ? l : lanes - 1)) * (size + 1)];
    for (int64_t j = 0; j < n; j++) {
        const double *const from = p->gram + j * size + i0;
        V product;
        if (sizeof(T) == 8 && lanes == VLEN) product = *(const LOOSE *)from;
        else for (int64_t l = 0; l < VLEN; l++) product[l] = (T)from[l < lanes ? l : lanes - 1];
        squared[j] = VMAX(own + SPLAT((T)p->gram[j * (size + 1)]) - two * product, zero);
    }
    for (int64_t l = 0; l < lanes; l++) squared[i0 + l][l] = -1;
    if (p->count < n) NAME(select)(squared, n, p->count, &low, &high);
    for (int64_t j = 0; j < n; j++) {
        const MASK nearer = (MASK)(squared[j] < low);
        sum = sum + CHOOSE(nearer, VMAX(squared[j], zero), zero);
        fewer = fewer + CHOOSE(nearer, one, zero);
    }
    for (int64_t l = 0; l < lanes; l++) {
        const double part = 1 / (double)p->count, left = (double)p->count - (double)fewer[l];
        int64_t ties = (int64_t)left; /* the first rows on the bound count */
        if (p->sums != NULL) p->sums[i0 + l] = (double)sum[l] + (p->count < n && low[l] > 0 ? left * (double)low[l] : 0);
        if (p->means == NULL) continue;
        const T *const column = (const T *)squared + l, bound = low[l];
        double *const to = p->means + (i0 + l) * size;
        for (int64_t j = 0; j < n; j++) {
            const T gap = column[j * VLEN];
            to[j] = gap < bound ? part : 0;
            if (gap == bound && ties > 0) to[j] = part, ties--;
        }
    }
}
