/* The n x n loop of the rules that walk to a centre, in double: the same arithmetic as IterativeRule.weights, which takes four
   hundred calls of torch to do it. */

enum { TQ, HUBER, CC, RFA, MCA };

struct walk {
    int64_t kind, size, n, f, iterations, anchor; /* anchor: where it starts; -1: the centre */
    double parameter, rounding, blur, spread;     /* parameter: a radius or a width; NaN: the median distance */
    const double *gram;                           /* (size, size): n rows, then the anchors */
    double *c, *reach, *tau, *scratch;            /* (size), (n), (1), (4 size) */
    uint8_t *outside;                             /* (n) */
};

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of x[0..n-1], for even n the midpoint; sorts into `room`. */
static double median_of(const double *x, int64_t n, double *room) {
    memcpy(room, x, (size_t)n * sizeof *x);
    qsort(room, (size_t)n, sizeof *x, ascending);
    return (room[(n - 1) / 2] + room[n / 2]) / 2;
}

/* How strongly each row pulls (into `pull`) when it is as far as `squared` says. */
static void pull_rows(const struct walk *w, double norm, double reach_v, const double *length, const double *squared,
                      double *pull, double *room) {
    const int64_t n = w->n;
    if (w->kind <= CC) {
        const double ratio = (double)(n - w->f) / (double)(w->f ? w->f : 1);
        const double tau = w->kind == CC ? w->parameter : w->f ? sqrt(ratio * (norm + w->spread)) : INFINITY;
        *w->tau = tau;
        for (int64_t i = 0; i < n; i++) {
            const double slack = w->rounding * (length[i] + reach_v) * (length[i] + reach_v) + w->blur;
            const int out = squared[i] > tau * tau + slack;
            w->outside[i] = (uint8_t)out;
            pull[i] = (!out ? 1 : w->kind == TQ ? 0 : tau / sqrt(squared[i])) / (double)n;
        }
        return;
    }
    double least = INFINITY, total = 0;
    for (int64_t i = 0; i < n; i++) least = squared[i] < least ? squared[i] : least;
    if (w->kind == RFA) { /* 1/r, measured by the nearest so that it cannot overflow */
        const double floor_ = w->parameter > 0x1p-1000 ? w->parameter : 0x1p-1000;
        const double near_ = sqrt(least) > floor_ ? sqrt(least) : floor_;
        for (int64_t i = 0; i < n; i++) {
            const double r = sqrt(squared[i]);
            total += pull[i] = near_ / (r > floor_ ? r : floor_);
        }
    } else { /* a Gaussian, measured from the nearest: where all would vanish the nearest is left */
        double sigma = w->parameter;
        if (isnan(sigma)) {
            for (int64_t i = 0; i < n; i++) pull[i] = sqrt(squared[i]);
            sigma = median_of(pull, n, room);
        }
        for (int64_t i = 0; i < n; i++) {
            const double exponent = (least - squared[i]) / (2 * sigma * sigma);
            total += pull[i] = isnan(exponent) ? 1 : exp(exponent);
        }
    }
    for (int64_t i = 0; i < n; i++) pull[i] /= total;
}

__attribute__((visibility("default"))) void robagg_walk(const struct walk *w) {
    const int64_t size = w->size, n = w->n;
    double *length = w->scratch, *squared = length + size, *pull = squared + size, *room = pull + size;
    for (int64_t i = 0; i < size; i++) {
        const double own = w->gram[i * size + i];
        length[i] = own > 0 ? sqrt(own) : own == own ? 0 : own; /* a NaN stays one, for the alarm to tell */
        w->c[i] = w->anchor == i - n && w->anchor >= 0;
    }
    for (int64_t step = 0; step < w->iterations; step++) {
        double norm = 0, reach_v = 0, sum = 0;
        for (int64_t i = 0; i < size; i++) { /* squared holds G c for a moment */
            double product = 0;
            for (int64_t j = 0; j < size; j++) product += w->gram[i * size + j] * w->c[j];
            squared[i] = product;
            norm += w->c[i] * product;
            reach_v += fabs(w->c[i]) * length[i];
        }
        for (int64_t i = 0; i < n; i++) {
            const double gap = w->gram[i * size + i] - 2 * squared[i] + norm;
            squared[i] = gap < 0 ? 0 : gap;
        }
        pull_rows(w, norm < 0 ? 0 : norm, reach_v, length, squared, pull, room);
        for (int64_t i = 0; i < n; i++) sum += pull[i];
        for (int64_t i = 0; i < size; i++) w->c[i] = w->c[i] * (1 - sum) + (i < n ? pull[i] : 0);
    }
    for (int64_t i = 0; i < n; i++) w->reach[i] = sqrt(squared[i]);
}
