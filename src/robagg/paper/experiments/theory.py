"""The paper's small computations, which follow a rule's iterates one by one: Figure 1, Example 1, Theorem 2."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from robagg._core.iterative import IterativeRule
from robagg._core.outcome import Pull
from robagg._core.passes import Passes
from robagg._core.sketch import Sketch
from robagg._core.stack import read
from robagg.paper.claims import Finding
from robagg.paper.experiment import Computation, Computed
from robagg.paper.tq_true import TQTrue, find_true_tau2, mean_of_honest
from robagg.rules import TQ, Huber
from robagg.rules.huber import clip
from robagg.theory import bias_condition, huber_bias, huber_move

FAR_OFF = 1000.0
ON = 1e-6
"""Nearer than this to the honest mean an iterate is on it."""


def walk(
    pull: Callable[[Sketch, Tensor, Tensor], Pull], sketch: Sketch, start: Tensor, iterations: int
) -> list[Tensor]:
    """Coefficients (n,) of the iterates, the start first; those of a walk that has come to rest are not repeated."""
    path = [start]
    for _ in range(iterations):
        c = path[-1]
        path.append(pull(sketch, c, sketch.squared_distances(c)).move(sketch, c))
        if bool((path[-1] - c).abs().max() < 1e-13):
            break
    return path


def sketch_rows(x: Tensor, f: int) -> tuple[Tensor, Sketch]:
    """The median (d,) of the rows (n, d) and their sketch about it."""
    medians, sketch = Passes(read(x).leaves, {}).sketch(f)
    return medians[0], sketch


def trace_points(x: Tensor, median: Tensor, path: list[Tensor]) -> Tensor:
    """The iterates (k, d) themselves."""
    return median + torch.stack(path) @ (x - median)


def follow(rule: IterativeRule, x: Tensor, f: int, *, from_mean: bool = False, iterations: int = 100) -> Tensor:
    """The iterates (k, d) of a rule on rows (n, d), from the median or from the mean of all rows.

    Example:
        >>> from robagg import TQ
        >>> x = torch.tensor([[1.0], [1.2], [0.8], [1.0], [50.0]], dtype=torch.float64)
        >>> follow(TQ(f=1), x, 1)[-1]
        tensor([1.], dtype=torch.float64)
    """
    median, sketch = sketch_rows(x, f)
    start = sketch.on_rows(torch.full((sketch.n,), 1 / sketch.n, dtype=torch.float64)) if from_mean else sketch.centre()
    return trace_points(x, median, walk(rule.pull, sketch, start, iterations))


def pull_huber(sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
    """Huber's pull with the true tau."""
    return clip(sketch, squared, find_true_tau2(sketch, c).sqrt(), sketch.slack(c))


def follow_from_truth(x: Tensor, f: int, iterations: int) -> tuple[Tensor, Tensor]:
    """The iterates (k, d) of Huber and of TQ with the true tau, from the mean of the honest rows, the first n-f."""
    median, sketch = sketch_rows(x, f)
    start = mean_of_honest(sketch)
    huber, tq = (trace_points(x, median, walk(p, sketch, start, iterations)) for p in (pull_huber, TQTrue(f=f).pull))
    return huber, tq


def draw_plane(seed: int) -> Tensor:
    """Ten honest points from N(0, 1) and nine outliers around (10, 10) with variance 0.1: (19, 2)."""
    source = torch.Generator().manual_seed(seed)
    noise = torch.randn(19, 2, generator=source, dtype=torch.float64)
    return torch.cat([noise[:10], 10 + 0.1**0.5 * noise[10:]])


def compute_fig1(draws: int) -> Computed:
    """How often each rule ends on the honest mean, from each start, and the paths of the first draw."""
    rules: dict[str, IterativeRule] = {"Huber": Huber(f=9), "TQ": TQ(f=9)}
    starts = {"the median": False, "the mean of all points": True}
    ended = {(rule, start): 0 for rule in rules for start in starts}
    away = dict.fromkeys(ended, 0.0)
    paths: dict[tuple[str, str], Tensor] = {}
    for seed in range(draws):
        x = draw_plane(seed)
        for rule, start in ended:
            path = follow(rules[rule], x, 9, from_mean=starts[start])
            distance = float((path[-1] - x[:10].mean(0)).norm())
            ended[rule, start] += distance < ON
            away[rule, start] += distance / draws
            paths.setdefault((rule, start), path)

    def judge(claim: str, count: int, share: float = 1.0) -> Finding:
        return Finding(claim, count >= share * draws, f"{count} of {draws}")

    return Computed(
        ("rule", "start", f"ends on the honest mean ({draws} draws)", "mean distance to it"),
        [[*spot, f"{100 * count / draws:.1f} %", f"{away[spot]:.3f}"] for spot, count in ended.items()],
        [
            judge("TQ ends on the honest mean from the median, always", ended["TQ", "the median"]),
            judge("TQ ends on it from the mean of all points, in 95 %", ended["TQ", "the mean of all points"], 0.9),
            *(judge(f"Huber never ends on it from {start}", draws - ended["Huber", start]) for start in starts),
        ],
        {"points": draw_plane(0), "f": 9, "paths": paths},
    )


def place_groups(f: int) -> Tensor:
    """Half of the honest rows at 1, half at -1, the Byzantine far off at a right angle, so that s is 1: (20, 2)."""
    h = 20 - f
    x = torch.zeros(20, 2, dtype=torch.float64)
    x[:h, 0] = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(h)[:h]
    x[h:, 1] = FAR_OFF
    return x


def compute_example1(draws: int) -> Computed:
    """One step of Huber and of TQ from the honest mean."""
    lines, held = [], []
    for f in (2, 4, 6, 8):
        x = place_groups(f)
        huber, tq = (float((path[-1] - path[0]).norm()) for path in follow_from_truth(x, f, 1))
        sketch = sketch_rows(x, f)[1]
        tau = float(find_true_tau2(sketch, mean_of_honest(sketch)).sqrt())
        stated = huber_move(f / 20, tau, 1.0)
        lines.append([f"{f}", f"{f / 20:.2f}", *(f"{value:.4f}" for value in (tau, stated, huber, tq))])
        held.append(abs(huber - stated) <= 1e-6 and tq <= 1e-6)
    claim = "one step from the honest mean: Huber moves by delta tau s, TQ not at all"
    finding = Finding(claim, all(held), f"{sum(held)} of {len(held)}")
    return Computed(("f", "delta", "tau", "delta tau s", "Huber moves", "TQ moves"), lines, [finding])


def place_far(f: int) -> Tensor:
    """Honest rows from N(0, 1) and Byzantine rows that stand together far off: (60, 10)."""
    x = torch.randn(60, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[60 - f :] = 1e4
    return x


def compute_theorem2(draws: int) -> Computed:
    """Where Huber and TQ rest, in squared distances from the honest mean over the honest variance."""
    lines, held = [], []
    curve: list[tuple[float, float, float, float]] = []
    for f in (1, 3, 6, 9, 12, 15, 18, 21, 24, 27):
        x, h, delta = place_far(f), 60 - f, f / 60
        mean = x[:h].mean(0)
        away = (x[:h] - mean).norm(dim=1)
        variance = float(away.square().mean())
        rest, still = (path[-1] for path in follow_from_truth(x, f, 3000))
        s = min(1.0, float(torch.nn.functional.normalize(x[h:] - rest, dim=1).mean(0).norm()))
        huber, tq = (float((end - mean).square().sum()) / variance for end in (rest, still))
        formula = huber_bias(delta, s) if delta * (1 + s**2) < 1 else float("inf")
        limits = (bias_condition(s, float(away.max()), variance, printed=printed) for printed in (False, True))
        meets = [delta <= limit for limit in limits]
        if meets[0]:
            held.append(abs(huber - formula) <= 1e-3 * formula)
        words = ["yes" if met else "no" for met in meets]
        lines.append([f"{f}", f"{delta:.3f}", f"{s:.3f}", f"{huber:.4f}", f"{formula:.4f}", *words, f"{tq:.4f}"])
        curve.append((delta, huber, formula, tq))
    finding = Finding("within the condition Huber's bias is the formula's", all(held), f"{sum(held)} of {len(held)}")
    head = ("f", "delta", "s", "bias/Var", "formula", "condition, k=G^2/Var", "as printed", "TQ's bias/Var")
    return Computed(head, lines, [finding], {"bias": curve})


FIG1 = Computation(
    "fig1", "Iterates of Huber and TQ in the plane, n=19, f=9, 100 iterations, tau by MAD", compute_fig1, 500, 60
)
EXAMPLE1 = Computation("example1", "Example 1: one step from the honest mean, n=20, G=1", compute_example1)
THEOREM2 = Computation(
    "theorem2", "Theorem 2: Huber's squared bias, n=60, d=10, Byzantine rows far off together", compute_theorem2
)
