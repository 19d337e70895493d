/* The n x n loop of the filters, in double: the same arithmetic as robagg._core.filtering, step by step, but it ends where nothing
   more can change. Included once for each instruction set that is worth it; the results are the same to the bit. */

#ifndef FILTER
#define FILTER
enum { QUAD = 4, SQUARINGS = 20 };
static const double OUT = 1e-9, SLACK = 1e-9; /* filtering.py says what they are */
typedef double quad __attribute__((vector_size(8 * QUAD), aligned(8)));

struct filter {
    int64_t n, size, steps;     /* gram is (size, size), and its first n rows count */
    double f, level;
    const double *gram, *votes; /* votes (n) */
    double *left, *scratch;     /* (n); 4 matrices of n rows padded to whole quads, and 5 vectors so padded */
};
#endif

/* to = from * from for symmetric matrices whose rows are p numbers, p a multiple of QUAD. */
static void NAME(square_matrix)(const double *from, double *to, int64_t n, int64_t p) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i / QUAD * QUAD; j < p; j += QUAD) {
            quad sum = {0};
            for (int64_t k = 0; k < n; k++) sum += from[i * p + k] * *(const quad *)(from + k * p + j);
            *(quad *)(to + i * p + j) = sum;
        }
        for (int64_t j = i + 1; j < n; j++) to[j * p + i] = to[i * p + j];
    }
}

/* The projector on the top eigenvectors of `matrix`, of trace 1, into `power`. */
static void NAME(project_on_top)(const double *matrix, double *power, double *next, int64_t n, int64_t p) {
    double top = 0x1p-1022;
    for (int64_t i = 0; i < n * p; i++) top = fabs(matrix[i]) > top ? fabs(matrix[i]) : top;
    for (int64_t i = 0; i < n * p; i++) power[i] = matrix[i] / top;
    for (int64_t round = 0; round < SQUARINGS; round++) {
        double trace = 0, change = 0;
        NAME(square_matrix)(power, next, n, p);
        for (int64_t i = 0; i < n; i++) trace += next[i * p + i];
        trace = trace > 0x1p-1022 ? trace : 0x1p-1022;
        for (int64_t i = 0; i < n * p; i++) {
            const double now = next[i] / trace, gap = fabs(now - power[i]);
            change = gap > change ? gap : change;
            power[i] = now;
        }
        if (change < 1e-14) break; /* it is a projector already */
    }
}

static void NAME(filter)(const struct filter *w) {
    const int64_t n = w->n, p = (n + QUAD - 1) / QUAD * QUAD;
    double *rows = w->scratch, *matrix = rows + n * p, *power = matrix + n * p, *next = power + n * p;
    double *c = next + n * p, *share = c + p, *root = share + p, *product = root + p, *along = product + p;
    double unit = 0x1p-1022, total = 0, least = INFINITY;
    memset(w->scratch, 0, (size_t)(4 * n * p + 5 * p) * sizeof *rows);
    for (int64_t i = 0; i < n; i++) {
        unit = w->gram[i * (w->size + 1)] > unit ? w->gram[i * (w->size + 1)] : unit;
        total += c[i] = w->left[i] = w->votes[i];
    }
    const double all = total, level = w->level / unit;
    for (int64_t step = 0; step < w->steps; step++) {
        double norm = 0, spread = 0, most = 0x1p-1022, left = 0;
        for (int64_t i = 0; i < n; i++) share[i] = c[i] / total, root[i] = sqrt(share[i]);
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;
            for (int64_t j = 0; j < n; j++) sum += w->gram[i * w->size + j] / unit * share[j];
            norm += share[i] * (product[i] = sum);
        }
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                rows[i * p + j] = (w->gram[i * w->size + j] / unit - product[i] - product[j] + norm) * root[j];
                matrix[i * p + j] = root[i] * rows[i * p + j];
            }
        NAME(project_on_top)(matrix, power, next, n, p);
        for (int64_t i = 0; i < n * p; i++) spread += power[i] * matrix[i];
        if (!(spread >= least * (1 - SLACK))) {
            least = spread;
            memcpy(w->left, c, (size_t)n * sizeof *c);
        }
        if (spread <= level * (1 + SLACK)) break;
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;
            for (int64_t j = 0; j < p; j += QUAD) {
                quad part = {0};
                for (int64_t k = 0; k < n; k++) part += rows[i * p + k] * *(const quad *)(power + k * p + j);
                for (int64_t k = 0; k < QUAD; k++) sum += part[k] * rows[i * p + j + k];
            }
            along[i] = sum > 0 ? sum / (spread > 0x1p-1022 ? spread : 0x1p-1022) : 0;
            if (c[i] > OUT && along[i] > most) most = along[i];
        }
        const double gentle = level / spread < 0.5 ? level / spread : 0.5;
        for (int64_t i = 0; i < n; i++) {
            const double part = along[i] / most < 1 ? along[i] / most : 1, now = c[i] * (1 - (1 - gentle) * part);
            left += share[i] = now > OUT ? now : 0;
        }
        if (!(left > all - 2 * w->f + SLACK * all)) break;
        memcpy(c, share, (size_t)n * sizeof *c);
        total = left;
    }
}
#undef NAME
