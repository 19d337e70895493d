/* The n x n loop of the rules that walk to a centre, in double: the same arithmetic as IterativeRule.weights, which takes four
   hundred calls of torch to do it. */

enum { TQ, HUBER, CC, RFA, MCA };

struct walk {
    int64_t kind, size, n, iterations, anchor;   /* anchor: where it starts; -1: the centre */
    double f, parameter, rounding, blur, spread; /* parameter: a radius or a width; NaN: the median distance */
    const double *gram;                          /* (size, size): n rows, then the anchors */
    const double *votes;                         /* (n) of sum n, for how many rows each counts; NULL: one each */
    double *c, *reach, *tau, *scratch;            /* (size), (n), (1), (5 size) */
    uint8_t *outside;                             /* (n) */
};

struct voter {
    double x, votes;
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

/* The median of x[0..n-1] with their votes: where half of these lie below a value, within rounding, the midpoint to it. */
static double median_of_votes(const double *x, const double *votes, int64_t n, struct voter *room) {
    for (int64_t i = 0; i < n; i++) room[i] = (struct voter){x[i], votes[i]};
    qsort(room, (size_t)n, sizeof *room, ascending); /* compares the first number */
    const double half = (double)n / 2, close = 1e-12 * (double)n;
    double sum = 0, low = room[n - 1].x;
    for (int64_t i = 0, found = 0; i < n; i++) {
        if (!(room[i].votes > 0)) continue;
        if (found) return (low + room[i].x) / 2;
        sum += room[i].votes;
        if (sum < half - close) continue;
        low = room[i].x;
        if (sum > half + close) break;
        found = 1;
    }
    return low;
}

static inline double count(const struct walk *w, int64_t i) { return w->votes ? w->votes[i] : 1; }

/* How strongly each row pulls (into `pull`) when it is as far as `squared` says. */
static void pull_rows(const struct walk *w, double norm, double reach_v, const double *length, const double *squared,
                      double *pull, double *room) {
    const int64_t n = w->n;
    if (w->kind <= CC) {
        const double ratio = ((double)n - w->f) / (w->f > 0 ? w->f : 1);
        const double tau = w->kind == CC ? w->parameter : w->f > 0 ? sqrt(ratio * (norm + w->spread)) : INFINITY;
        *w->tau = tau;
        for (int64_t i = 0; i < n; i++) {
            const double slack = w->rounding * (length[i] + reach_v) * (length[i] + reach_v) + w->blur;
            const int out = squared[i] > tau * tau + slack;
            w->outside[i] = (uint8_t)out;
            pull[i] = (!out ? 1 : w->kind == TQ ? 0 : tau / sqrt(squared[i])) * count(w, i) / (double)n;
        }
        return;
    }
    double least = INFINITY, total = 0;
    for (int64_t i = 0; i < n; i++) least = squared[i] < least && count(w, i) > 0 ? squared[i] : least;
    if (w->kind == RFA) { /* 1/r, measured by the nearest so that it cannot overflow */
        const double floor_ = w->parameter > 0x1p-1000 ? w->parameter : 0x1p-1000;
        const double near_ = sqrt(least) > floor_ ? sqrt(least) : floor_;
        for (int64_t i = 0; i < n; i++) {
            const double r = sqrt(squared[i]);
            total += pull[i] = near_ / (r > floor_ ? r : floor_) * count(w, i);
        }
    } else { /* a Gaussian, measured from the nearest: where all would vanish the nearest is left */
        double sigma = w->parameter;
        if (isnan(sigma)) {
            for (int64_t i = 0; i < n; i++) pull[i] = sqrt(squared[i]);
            sigma = w->votes ? median_of_votes(pull, w->votes, n, (struct voter *)room) : median_of(pull, n, room);
        }
        for (int64_t i = 0; i < n; i++) {
            const double exponent = (least - squared[i]) / (2 * sigma * sigma);
            total += pull[i] = (isnan(exponent) ? 1 : exp(exponent > 0 ? 0 : exponent)) * count(w, i);
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
