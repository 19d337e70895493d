/* The passes of cpu_many.h on threads: pieces are dealt to whoever is free, and no number depends on who took one. */

struct crew {
    void (*task)(const void *job, int64_t piece, void *scratch);
    const void *job;
    int64_t pieces, seats;
    size_t own; /* bytes of scratch for each seat */
    char *scratch;
    atomic_long next, taken;
    fenv_t rounding;
};

static void serve(void *argument)
{
    struct crew *const c = argument;
    const int64_t seat = atomic_fetch_add(&c->taken, 1);
    if (seat >= c->seats) return;
    fenv_t before;
    fegetenv(&before);
    fesetenv(&c->rounding);
    for (int64_t k; (k = atomic_fetch_add(&c->next, 1)) < c->pieces;) c->task(c->job, k, c->scratch + (size_t)seat * c->own);
    fesetenv(&before);
}

static void *serve_alone(void *crew)
{
    serve(crew);
    return NULL;
}

static void deal(struct crew *c, int64_t pieces, void (*parallel)(void (*)(void *), void *, unsigned, unsigned))
{
    atomic_store(&c->next, 0);
    atomic_store(&c->taken, 0);
    c->pieces = pieces;
    if (c->seats > 1 && pieces > 1 && parallel != NULL) {
        parallel(serve, c, (unsigned)c->seats, 0);
        return;
    }
    pthread_t others[CHUNKS];
    int64_t started = 0;
    while (started + 1 < c->seats && started + 1 < pieces && !pthread_create(others + started, NULL, serve_alone, c)) started++;
    serve(c);
    for (int64_t k = 0; k < started; k++) pthread_join(others[k], NULL);
}

/* Seats for so many threads with scratch of their own; 1 where there was no memory. */
static int seat(struct crew *c, int32_t threads, size_t own)
{
    void *block;
    c->seats = threads < 1 ? 1 : threads > CHUNKS ? CHUNKS : threads;
    c->own = (own / LINE + 1) * LINE;
    if (posix_memalign(&block, LINE, (size_t)c->seats * c->own)) return 1;
    c->scratch = block;
    fegetenv(&c->rounding);
    return 0;
}

struct block { /* a range of columns of all products */
    const struct product *p;
    int64_t at, rows, columns; /* panels */
};

/* The panels of a piece; of a symmetric matrix those on and above the diagonal are numbered, row by row. */
static void find_panels(const struct block *b, int64_t piece, int64_t *I, int64_t *J)
{
    if (!b->p->same) {
        *I = piece / b->columns, *J = piece % b->columns;
        return;
    }
    *I = 0;
    while (piece >= b->columns - *I) piece -= b->columns - (*I)++;
    *J = *I + piece;
}

static void multiply_panels(const void *job, int64_t piece, void *scratch)
{
    const struct block *const b = job;
    const struct product *const p = b->p;
    int64_t I, J;
    find_panels(b, piece, &I, &J);
    const int64_t i0 = I * p->m / b->rows, i1 = (I + 1) * p->m / b->rows;
    const int64_t j0 = J * p->n / b->columns, j1 = (J + 1) * p->n / b->columns;
    if (b->at < p->d) {
        all[p->isa][p->wide].multiply(p, i0, i1, j0, j1, b->at, scratch);
        return;
    }
    for (int64_t i = i0; i < i1; i++) /* all are there: the other half is the mirror image */
        for (int64_t j = j0 > i + 1 ? j0 : i + 1; j < j1; j++) p->out[j * p->n + i] = p->out[i * p->n + j];
}

/* Adds the products of all pairs of rows about the centre to the matrix; 1 where there was no memory. */
__attribute__((visibility("default"))) int robagg_product(const struct product *p)
{
    struct block b = {.p = p, .rows = (p->m + PANEL - 1) / PANEL, .columns = (p->n + PANEL - 1) / PANEL};
    struct crew crew = {.task = multiply_panels, .job = &b};
    const int64_t pieces = p->same ? b.rows * (b.rows + 1) / 2 : b.rows * b.columns, step = DEEP / (p->wide ? 8 : 4);
    if (seat(&crew, p->threads, (2 * PANEL + 1) * (DEEP + LINE))) return 1;
    for (; b.at < p->d; b.at += step) deal(&crew, pieces, p->parallel);
    if (p->same) deal(&crew, pieces, p->parallel);
    free(crew.scratch);
    return 0;
}

enum { SOME = 4 }; /* rows of a piece of a projection */

static void project_rows(const void *job, int64_t piece, void *scratch)
{
    const struct projection *const p = job;
    const int64_t end = (piece + 1) * SOME;
    all[p->isa][p->wide].project(p, piece * SOME, end < p->n ? end : p->n, scratch);
}

/* Adds the projections of all rows; 1 where there was no memory. */
__attribute__((visibility("default"))) int robagg_project(const struct projection *p)
{
    struct crew crew = {.task = project_rows, .job = p};
    if (seat(&crew, p->threads, (size_t)p->k * 8 + LINE)) return 1;
    deal(&crew, (p->n + SOME - 1) / SOME, p->parallel);
    free(crew.scratch);
    return 0;
}

static void find_nearest(const void *job, int64_t piece, void *scratch)
{
    const struct nearest *const p = job;
    all[p->isa][1].nearest(p, piece * all[p->isa][1].lanes, scratch);
}

/* Each row's nearest rows, itself first, ties to the lower index; 1 where there was no memory. */
__attribute__((visibility("default"))) int robagg_nearest(const struct nearest *p)
{
    struct crew crew = {.task = find_nearest, .job = p};
    const int64_t lanes = all[p->isa][1].lanes;
    if (seat(&crew, p->threads, (size_t)p->n * (size_t)lanes * 8 + LINE)) return 1;
    deal(&crew, (p->n + lanes - 1) / lanes, p->parallel);
    free(crew.scratch);
    return 0;
}
