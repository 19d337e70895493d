"""Optimal: what hurts the rule at hand most, out of many attacks that are tried on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.alias import Alias
from robagg.attacks.alie import deviate
from robagg.attacks.along import check_choice
from robagg.attacks.base import Attack, Setup, State, View
from robagg.attacks.jittered import draw_mix, fit_weights, read_share
from robagg.attacks.trial import Span, try_rows

AIMS = ("far", "against", "signs", "either")
FAMILIES = ("ipm", "alie", "mean", "signs", "main")
SCALES = (0.1, 0.3, 0.7, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 10.0)
"""Strengths c0 of IPM."""
DISTANCES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0)
"""Strengths z of ALIE, and distances from the mean in honest spreads."""
SEARCH: dict[str, None] = dict.fromkeys(("agg", "pre_agg_list", "f", "evals", "start", "delta", "ratio"))
"""ByzFL's parameters of the search: the rule and f are the run's here, and the strengths those above."""
JITTERS = (0.0, 0.12, 0.5, 1.0)


@dataclass(frozen=True)
class Optimal(Attack):
    """Try many rows on the very rule that they will meet, each round, and send those that move it most.

    x_k = argmax_r harm(R(honest rows, r)),    r = mean + c u + jitter own_k

    over families u (IPM: c0 times the mean, reversed; ALIE: z standard deviations; the directions of the honest mean,
    of its signs, and in which honest rows vary most, all three in honest spreads and against the mean), ten strengths
    each, and jitters 0, 0.12, 0.5 and 1 (own_k: see `Jittered`): 200 tries a round. Harm is `|R - mean|` (aim far),
    `-<R, mean>` (aim against) or `-<R, sign(mean)>` (aim signs, under which small coordinates count as large ones do);
    aim either goes against the mean in rounds in which some try turns the step round, `<R, mean> < 0`, and far in all
    others. What is worst for a round need not be worst for a training.

    It knows from the run the rule, the last aggregate where the rule remembers it, and nothing else: what a rule draws
    it draws for itself, FLTrust and MoNNA are tried with the median in the place of the trusted row, and FoolsGold on
    the round's rows alone. Of a rule that decides by distances alone (Krum, CAF, SpectralFilter, RFA, also behind NNM
    or Clipping) a try costs n x n work; any other rule is called on the rows at each try.

    ByzFL's `Optimal_InnerProductManipulation` and `Optimal_ALittleIsEnough` are names for it with one family, no jitter
    and aim far. The strengths tried are not theirs: theirs are searched for, and these are those of the lists.

    Args:
        aim: "far", "against", "signs" or "either".
        jitter: one jitter, in honest spreads; None: chosen among four.
        family: "ipm", "alie", "mean", "signs" or "main"; None: chosen among them.

    Example:
        >>> import torch
        >>> from robagg import Krum
        >>> from robagg.attacks import Optimal, Setup, View
        >>> honest = torch.randn(7, 20, generator=torch.Generator().manual_seed(0)) + 0.3
        >>> attack = Optimal(jitter=0.0)
        >>> state = attack.start(Setup(n=10, f=3, d=20))
        >>> sent, _ = attack.craft(View(honest, None, n=10, f=3, rule=Krum(f=3)), state)
        >>> value = Krum(f=3)(torch.cat([honest, sent]))  # it takes what was sent
        >>> bool((value == sent[0]).all())
        True

    References:
        Shejwalkar, Houmansadr. Manipulating the Byzantine. NDSS 2021 (attacks that know the rule).
        El Mhamdi, Guerraoui, Rouault. Distributed momentum for Byzantine-resilient stochastic gradient descent.
        ICLR 2021. arXiv:2003.00010 (a strength searched for against the rule).
    """

    aliases: ClassVar[tuple[str, ...]] = (
        Alias("Optimal_InnerProductManipulation", SEARCH, family="ipm", jitter=0.0, aim="far"),
        Alias("Optimal_ALittleIsEnough", SEARCH, family="alie", jitter=0.0, aim="far"),
    )

    aim: str = "signs"
    jitter: float | None = None
    family: str | None = None

    def __post_init__(self) -> None:
        check_choice(self, "aim", AIMS)
        if self.jitter is not None:
            read_share(self, "jitter")
        if self.family is not None:
            check_choice(self, "family", FAMILIES)

    def list_tries(self) -> list[list[float]]:
        """Each try: its strength in the column of its family, and its jitter behind them."""
        tries = []
        for jitter in JITTERS if self.jitter is None else (self.jitter,):
            for at, family in enumerate(FAMILIES):
                for strength in SCALES if family == "ipm" else DISTANCES:
                    if self.family in (None, family):
                        tries.append([*(strength * (at == k) for k in range(len(FAMILIES))), jitter])
        return tries

    def start(self, setup: Setup) -> State:
        """mix (f, h): the clients' own directions; tries (K, 6): what is tried in each round."""
        tries = torch.tensor(self.list_tries(), dtype=torch.float64, device=setup.device)
        return {"mix": draw_mix(setup), "tries": tries}

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        if view.rule is None:
            raise ValueError("rule must be the rule that the rows will meet, got None")
        if not len(view.who):
            return view.allot(), state
        mean = view.mean
        span = Span.of(view, deviate(view.honest, mean), mean.sign())
        mix = state["mix"]
        # Those who send, and in the place of colluders that play something else, what these would do.
        others = [k for k in range(len(mix)) if k not in view.who][: view.f - len(view.who)]
        clients = sorted((*view.who, *others))
        own = fit_weights(view, torch.stack([mix[k] for k in clients])).double()
        tries = self._combine(span, state["tries"], own)
        far, along = try_rows(view, view.rule, span, tries)
        harm = torch.nan_to_num(
            self._judge(far, along[:, span.h], along[:, span.h + 2]),
            nan=-torch.inf,
            posinf=torch.inf,
            neginf=-torch.inf,
        )
        # Ties: the first, on every device.
        index = torch.arange(len(harm), device=harm.device)
        best = torch.where(harm == harm.max(), index, len(harm) - 1).min()
        rows = span.form(mean, tries.index_select(0, best.view(1))[0])
        sent = rows if len(rows) == len(view.who) else torch.stack([rows[clients.index(k)] for k in view.who])
        return sent, state

    def _combine(self, span: Span, tries: Tensor, own: Tensor) -> Tensor:
        """(K, f, E) coefficients of the rows, from what is tried (K, 6) and the clients' own directions (f, h)."""
        tiny = torch.finfo(torch.float64).tiny
        h = span.h
        gram = span.gram[:h, :h]
        spread = (gram.diagonal().sum() / h).clamp(min=0).sqrt()
        mean, signs = (spread / span.gram[k, k].clamp(min=tiny).sqrt() for k in (h, h + 2))
        ipm, alie, back, turned, main, jitter = tries.unbind(1)
        beside = torch.stack([-(ipm + (ipm > 0)) - back * mean, -alie, -turned * signs], dim=1)
        common = torch.cat([(main * spread)[:, None] * find_main(span), beside], dim=1)
        apart = torch.nn.functional.pad(own, (0, len(span.gram) - h))
        return common[:, None] + jitter[:, None, None] * apart

    def _judge(self, far: Tensor, along: Tensor, signs: Tensor) -> Tensor:
        """(K,) the harm of each try."""
        harms = {"far": far, "against": -along, "signs": -signs}
        return harms[self.aim] if self.aim in harms else torch.where(along.min() < 0, -along, far)

    def describe(self, n: int, f: int) -> str:
        count = len(self.list_tries())
        return f"the most harmful of {count} tries on the rule itself, each round, aim {self.aim}"


def find_main(span: Span) -> Tensor:
    """(h,) coefficients of the unit vector along which honest rows vary most, pointing against their mean."""
    tiny = torch.finfo(torch.float64).tiny
    h = span.h
    gram = span.gram[:h, :h]
    power = gram / gram.diagonal().sum().clamp(min=tiny)
    for _ in range(12):
        power = power @ power.T
        power = power / power.diagonal().sum().clamp(min=tiny)
    # The projector on the top direction; its longest column is the surest.
    at = power.diagonal().argmax().view(1)
    weights = power.index_select(1, at)[:, 0]
    length = (weights @ gram @ weights).clamp(min=tiny).sqrt()
    ahead = weights @ span.gram[:h, h]
    return weights / length * (1 - 2 * (ahead > 0).double())
