"""A communication hook for DistributedDataParallel: each rank's gradient is a row, and a rule makes the common one."""

from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import GradBucket  # type: ignore[attr-defined]

from robagg._core.aggregate import Request, aggregate
from robagg._core.rule import Rule
from robagg._core.shared import SharedStack
from robagg._core.verdict import Verdict, judge, rebuild
from robagg.distributed.slices import Slices, Whole, send


class HookState:
    """What `robust_hook` needs to know, and in `verdict` what it decided last.

    It protects against bad gradients (hostile data, broken hardware), not against a rank that runs other code.

    Args:
        rule: a rule or a chain, the same on all ranks; its rows are the ranks.
        group: the process group that DDP was given; None: all ranks.
        weights: what each rank claims to count, such as its batch size, in the order of ranks; None: all alike.
        max_weight: the largest share of all that a claim can give a rank; None: as far as f allows it.
        generator: what is random takes its numbers here, on the first rank.
        verdicts: whether each step leaves a verdict, which takes another pass over the gradients.
    """

    def __init__(
        self,
        rule: Rule,
        group: dist.ProcessGroup | None = None,
        *,
        weights: Any = None,
        max_weight: float | None = None,
        generator: torch.Generator | None = None,
        verdicts: bool = True,
    ) -> None:
        if not isinstance(rule, Rule):
            raise TypeError(f"rule must be a robagg rule or chain, got {rule!r}")
        self.rule, self.group, self.verdicts = rule, group, verdicts
        self.request = Request(weights, generator=generator, verdict=verdicts, max_weight=max_weight)
        self.verdict: Verdict | None = None
        """On the ranks of the last step, the same on all of them; its value is None: that is in the gradients."""
        self._slices: list[Slices | Whole] = []
        self._last: list[Tensor] | None = None
        """This rank's slices of the last gradient, for a rule that remembers."""
        self._layout: list[list[int]] = []
        self._spare: dict[int, Tensor] = {}

    def take(self, bucket: GradBucket) -> torch.futures.Future[Tensor]:
        """Send a bucket's slices on their way; with the last bucket the decision is made for all of them."""
        if bucket.index() == 0:  # a backward pass that was broken off may have left some
            self._slices = []
        self._slices.append(send(bucket, self.group, self._spare))
        future = self._slices[-1].future
        if bucket.is_last():
            slices, self._slices = self._slices, []
            self._decide(slices)
        return future

    @torch.no_grad()
    def _decide(self, slices: list[Slices | Whole]) -> None:
        rows = tuple(one.wait() for one in slices)
        layout = [one.layout for one in slices]
        if layout != self._layout:  # DDP deals the parameters out again after its first step
            self._last, self._layout = None, layout
        n, dtypes = len(rows[0]), [leaf.dtype for leaf in rows]
        ranks = slices[0].ranks
        stack = SharedStack(
            n=n,
            leaves=rows,
            counters=(),
            kept=tuple(range(n)),
            reasons={},
            rebuild=lambda values, _: [value.to(dtype) for value, dtype in zip(values, dtypes, strict=True)],
            flatten=list,
            ranks=ranks,
        )
        draws = ranks.share_draws(self.rule, self.request.generator)
        used, outcome = aggregate(self.rule, stack, replace(self.request, state=self._last, generator=draws))
        if self.verdicts:
            assert isinstance(used, SharedStack)
            known = ranks.measure(used, outcome.values)
            self.verdict = replace(judge(self.rule, used, outcome, distances_known=known), value=None)
        values = rebuild(used, outcome)
        if self.rule.core.remembers:
            self._last = values
        for one, value in zip(slices, values, strict=True):
            one.send_back(value)
        for one in slices:
            one.finish()


def robust_hook(state: HookState, bucket: GradBucket) -> torch.futures.Future[Tensor]:
    """A communication hook for `DistributedDataParallel` that aggregates the ranks' gradients by a rule.

    It protects against bad gradients (hostile data, broken hardware), not against a rank that runs other code: that
    could answer with any slice of the common gradient.

    Every bucket is sent in slices as soon as it is full, so that each rank gets its slice from all. With the last one
    each sketches its slices, an all_reduce of n x n numbers makes one decision for the whole gradient, and each sends
    its slices of the value to all. These are the bytes of the all_reduce that DDP would do; the half that comes back
    cannot overlap with the backward pass. Beside the buckets a rank holds one gradient more. A gradient of one bucket
    and few numbers is sent whole: every rank gets it from all, in one message, and decides by itself, to the last bit
    alike where ranks have the same CPU or GPU.

    Example:
        >>> import torch.distributed as dist, robagg as ra
        >>> from robagg.distributed import HookState, robust_hook
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> model = torch.nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
        >>> state = HookState(ra.TQ(f=0))
        >>> model.register_comm_hook(state, robust_hook)
        >>> model(torch.ones(4, 3)).sum().backward()
        >>> state.verdict.not_believed
        []
        >>> dist.destroy_process_group()
    """
    return state.take(bucket)
