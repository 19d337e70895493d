/* The passes over many rows, on threads: products of all pairs, projections, and each row's nearest rows. */

struct product { /* cpu_many.py has the same structures */
    int32_t isa, wide, threads, same; /* same: right is left, and the matrix is symmetric */
    int64_t m, n, d;
    const struct row *left, *right; /* m and n rows; the products are of their differences to the centre */
    struct row centre;
    double *out; /* (m, n): what is added to */
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
};

struct projection {
    int32_t isa, wide, threads, unused;
    int64_t n, d, k;
    const struct row *rows;
    const void *signs;     /* (d,) 1 or -1, in the compute type */
    const int64_t *shifts; /* one for each k columns, less than k */
    void *out;             /* (n, k) in the compute type: what is added to */
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
};

struct nearest {
    int32_t isa, threads;
    int64_t n, size, count;
    const double *gram;    /* (size, size), symmetric; its first n rows count */
    double *sums, *means; /* (n,) of squared distances to the nearest `count`; (n, size) their mean as a matrix; or NULL */
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
};

enum { PANEL = 80, DEEP = 4096 }; /* rows of a panel, and bytes of each: two panels and more fit into the second cache */
