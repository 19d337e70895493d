"""The algebra of adapters: inner products of the updates, and their weighted sum, without ever forming one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from robagg.files.lora.adapter import Factors


def measure_gram(adapters: Sequence[Mapping[str, Factors]]) -> Tensor:
    """The inner products (n, n) float64 of the updates of n adapters with the same modules.

    G_ij = sum over modules of s_i s_j <B_i^T B_j, A_i A_j^T>: products of r_i x r_j numbers stand for those of the
    whole matrices.
    """
    n = len(adapters)
    gram = torch.zeros(n, n, dtype=torch.float64)
    for module in adapters[0]:
        a, b = _stack([adapter[module] for adapter in adapters], [1.0] * n)
        owners = torch.repeat_interleave(torch.tensor([len(adapter[module].a) for adapter in adapters]))
        products = (b.T @ b) * (a @ a.T)
        # Not by a matrix of zeros and ones: what is infinite of one adapter must not become NaN in all others.
        rows = products.new_zeros(n, len(owners)).index_add_(0, owners, products)
        gram.index_add_(1, owners, rows)
    return gram


def embed(gram: Tensor) -> Tensor:
    """Points (n, n) with these inner products, so that rules that see distances alone can be asked about them.

    Rows are brought to length 1 first, so that what one enormous row costs in digits is lost to itself alone.
    """
    lengths = gram.diagonal().clamp(min=0).sqrt()
    unit = torch.where(lengths > 0, lengths, 1.0)
    values, vectors = torch.linalg.eigh(gram / unit[:, None] / unit)
    points: Tensor = vectors * values.clamp(min=0).sqrt() * lengths[:, None]
    return points


def combine(
    adapters: Sequence[Mapping[str, Factors]], weights: Sequence[float], rank: int | None
) -> dict[str, Factors]:
    """The weighted sum of the updates: factors laid side by side, or cut to a rank; weights and scales go into b.

    In the dtype in which most is kept of those that the factors have.
    """
    combined = {}
    for module, first in adapters[0].items():
        factors = [adapter[module] for adapter in adapters]
        dtype = factors[0].a.dtype
        for other in factors:
            dtype = torch.promote_types(dtype, torch.promote_types(other.a.dtype, other.b.dtype))
        a, b = _stack(factors, weights)
        if rank is not None and rank < len(a):
            a, b = cut_rank(a, b, rank)
        limit = torch.finfo(dtype).max
        a, b = (x.clamp(-limit, limit).to(dtype).contiguous() for x in (a, b))
        combined[module] = Factors(a, b, 1.0, first.ends)
    return combined


def cut_rank(a: Tensor, b: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """The factors (rank, in) and (out, rank) whose product is nearest to b @ a: the SVD of an R x R matrix.

    >>> a, b = torch.eye(3), torch.diag(torch.tensor([3.0, 2.0, 0.1]))
    >>> near = cut_rank(a, b, 2)
    >>> (near[1] @ near[0]).round(decimals=4)
    tensor([[3., 0., 0.],
            [0., 2., 0.],
            [0., 0., 0.]])
    """
    qb, rb = torch.linalg.qr(b)
    qa, ra = torch.linalg.qr(a.T)
    u, s, v = torch.linalg.svd(rb @ ra.T)
    root = s[:rank].sqrt()
    return root[:, None] * (v[:rank] @ qa.T), (qb @ u[:, :rank]) * root


def _stack(factors: Sequence[Factors], weights: Sequence[float]) -> tuple[Tensor, Tensor]:
    """(R, in) and (out, R) float64: the factors one after the other, with weights and scales in the second."""
    a = torch.cat([f.a.double() for f in factors])
    b = torch.cat([f.b.double() * (f.scale * weight) for f, weight in zip(factors, weights, strict=True)], dim=1)
    return a, b
