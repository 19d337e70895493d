"""ScaledFilter: SpectralFilter by distances to which small coordinates count as large ones do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robagg.rules.spectralfilter import SpectralFilter


@dataclass(frozen=True)
class ScaledFilter(SpectralFilter):
    """SpectralFilter by plain distances and distances in each coordinate's own spread together.

    Colluders who move every coordinate alike, as along the signs of the mean, hide in plain distances behind a few
    coordinates that vary much, and do their harm in those that vary little. With

        u_j^2 = MAD_j^2 + 0.01 V / d,    V = sum_j MAD_j^2,

    rows are as far apart as

        d_ik^2 = |x_i - x_k|^2 / s^2 + (1 / r^2) sum_j (x_ij - x_kj)^2 / u_j^2,

    with `s^2` as in SpectralFilter, and `r^2` the same by the distances of the second part. SpectralFilter then finds
    the weights by these distances. MADs are those of the rows that were sent, also behind a pre-aggregator; with client
    weights, of as many copies as a client has votes. It takes one pass more than SpectralFilter.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).
        standout: how many times its share of the variance a direction may have.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [50.0, 50.0]])
        >>> ScaledFilter(f=1)(x)
        tensor([0.0072, 0.0072])

    References:
        Its own; SpectralFilter's for the filter.
    """

    maps_well: ClassVar[bool] = False
    scaled: ClassVar[bool] = True
