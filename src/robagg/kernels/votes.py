"""What the reference does where rows have votes, (m,) int64: row i counts as votes[i] copies in every column."""

from __future__ import annotations

import torch
from torch import Tensor


def hold(x: Tensor, votes: Tensor, lo: int, hi: int) -> tuple[Tensor, Tensor, Tensor]:
    """The sorted rows (m, t), which row each value is of, and how many of the copies lo, ..., hi-1 it holds (int64)."""
    s, order = x.sort(dim=0)
    ends = votes[order].cumsum(dim=0)
    return s, order, ends.clamp(lo, hi) - (ends - votes[order]).clamp(lo, hi)


def mean_votes(x: Tensor, votes: Tensor, lo: int, hi: int) -> Tensor:
    """The mean (t,) of the sorted copies lo, ..., hi-1 of the rows (m, t)."""
    s, _, held = hold(x, votes, lo, hi)
    return (s * (held.double() / (hi - lo)).to(s.dtype)).sum(dim=0)


def middle_vote(x: Tensor, votes: Tensor) -> Tensor:
    """The median (t,) of the copies of the rows (m, t): of an even number the midpoint."""
    total = int(votes.sum())
    return mean_votes(x, votes, (total - 1) // 2, total // 2 + 1)


def share_votes(x: Tensor, votes: Tensor, lo: int, hi: int) -> Tensor:
    """What part (m, t) of the copies lo, ..., hi-1 is each row's; rows that are equal share theirs by their votes."""
    s, order, held = hold(x, votes, lo, hi)
    same = torch.cat([torch.zeros_like(s[:1], dtype=torch.int64), (s[1:] != s[:-1]).cumsum(dim=0)])
    mine = votes[order]
    there = torch.zeros_like(held).scatter_add(0, same, held).gather(0, same)
    among = torch.zeros_like(mine).scatter_add(0, same, mine).gather(0, same).clamp(min=1)
    part = there.double() * mine / among / (hi - lo)
    return torch.zeros_like(part).scatter(0, order, part)
