"""What a detail of the protocol does to cells of the paper.

    python studies/tq-paper/protocol.py --data DIR --json FILE

The paper leaves details open that its published forerunners settle in code (clients that share one model and one
random state, a choice of norm, crops before normalising). Each is tried alone, on cells where ours are not the
paper's. One JSON line a run, as they come; a run that is there already is not done again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from jobs import ATTACKS, RULES, begin, gather, make_parser
from robagg import Dataset, Task
from robagg.data.augment import shift_and_mirror
from robagg.tasks import CIFAR10, MNIST
from robagg.training import Federation, Loop


class Masks(nn.modules.dropout._DropoutNd):
    """Dropout of one dense batch whose masks are the same for all clients, and in all rounds if `kept`."""

    def __init__(self, p: float, channels: int, batch: int, *, kept: bool) -> None:
        super().__init__(p)
        self.shape, self.kept = (batch, channels), kept
        self.register_buffer("first", self.draw(torch.device("cpu")))

    def draw(self, device: torch.device) -> Tensor:
        return (torch.rand(self.shape, device=device) >= self.p) / (1 - self.p)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        assert isinstance(self.first, Tensor)
        mask = self.first if self.kept else self.draw(x.device)
        mask = mask.to(x.dtype).repeat(len(x) // len(mask), 1)
        return x * mask.view(*mask.shape, *(1,) * (x.ndim - 2))


@dataclass(frozen=True)
class SharedMasks(MNIST):
    """All clients drop the same."""

    kept: bool = True

    def build(self, dataset: Dataset, seed: int) -> nn.Module:
        model = super().build(dataset, seed)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            model.dropout1 = Masks(0.25, 64, self.settings.batch, kept=self.kept)
            model.dropout2 = Masks(0.5, 128, self.settings.batch, kept=self.kept)
        return model


@dataclass(frozen=True)
class Groups(CIFAR10):
    """GroupNorm of two channels a group in place of BatchNorm."""

    def build(self, dataset: Dataset, seed: int) -> nn.Module:
        model = super().build(dataset, seed)
        for module in list(model.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.BatchNorm2d):
                    setattr(module, name, nn.GroupNorm(child.num_features // 2, child.num_features))
        return model


class Crops:
    """Crops and flips that are the same for all clients, drawn again every so many rounds.

    It counts calls: the few with which a round is tried before it is captured make the first stretch shorter.
    """

    def __init__(self, rounds: int, border: Sequence[float]) -> None:
        self.rounds, self.border, self.t, self.kept = rounds, border, torch.zeros(()), torch.zeros(0)

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        drawn = torch.rand(3, x.shape[1], generator=generator, device=x.device)
        if not len(self.kept):
            self.t, self.kept = self.t.to(x.device), drawn
        # In place: a captured round does not come back here.
        self.kept.copy_(torch.where(self.t % self.rounds == 0, drawn, self.kept))
        self.t += 1
        top, left, mirrored = self.kept.repeat(1, len(x))
        return shift_and_mirror(x, (9 * top).long(), (9 * left).long(), mirrored < 0.5, 4, self.border)


@dataclass(frozen=True)
class SharedCrops(CIFAR10):
    """All clients crop and flip alike, for an epoch of 30 rounds."""

    @property
    def transform(self) -> Callable[[Tensor, torch.Generator], Tensor]:
        return Crops(30, self.outside)


def begin_with_gradients(federation: Federation) -> None:
    """Momenta begin as a gradient, and not as 0."""
    settings, federation.settings = federation.settings, dataclasses.replace(federation.settings, momentum=0.0)
    federation._compute(list(range(federation.n)))
    federation.settings = settings


CHANGES: dict[str, tuple[Task, bool]] = {
    "masks-kept": (SharedMasks(), False),
    "masks-kept-warm": (SharedMasks(), True),
    "masks-shared": (SharedMasks(kept=False), False),
    "group-norm": (Groups(), False),
    "crops-shared": (SharedCrops(), False),
    "crops-black": (CIFAR10(border="black"), False),
    "crops-black-shared": (SharedCrops(border="black"), False),
}
"""Their tasks, and whether momenta begin as gradients."""
CIFAR_CELLS = ("rfa ga", "huber mimic", "tm lf")
"""Rules that are surely the paper's, in cells that are all off by the same."""


def run(change: str, cell: str, seed: int, data: str, device: str) -> dict[str, Any]:
    """One run of a cell of table3 at f=6 or of table5 at f=4."""
    task, warm = CHANGES[change]
    f, rho = (6, 0.5) if isinstance(task, MNIST) else (4, 0.4)
    rule, attack = cell.split()
    federation, dataset = begin(task, rule, attack, f=f, rho=rho, seed=seed, data=data, device=device)
    if federation.notes:
        raise RuntimeError(f"clients share masks in one dense batch, and this is none: {federation.notes[0]}")
    if warm:
        begin_with_gradients(federation)
    result = Loop(federation, (dataset.test_x, dataset.test_y)).run()
    return {"change": change, "cell": cell, "seed": seed, "accuracy": result.accuracy}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--changes", default=",".join(CHANGES), help="these alone, with commas between")
    parser.add_argument("--cells", default="", help="tq alie,tm ipm: these alone")
    args = parser.parse_args()
    if torch.device(args.device).type == "cpu":
        parser.error("clients share masks in one dense batch, which needs a GPU: --device must be one, got cpu")
    chosen = args.changes.split(",")
    if unknown := sorted({*chosen} - {*CHANGES}):
        parser.error(f"--changes must be of {', '.join(CHANGES)}, got {', '.join(unknown)}")
    jobs = []
    for change, seed in product(chosen, range(args.seeds)):
        mnist = isinstance(CHANGES[change][0], MNIST)
        cells = [f"{rule} {attack}" for rule, attack in product(RULES, ATTACKS)] if mnist else CIFAR_CELLS
        jobs += [(change, cell, seed) for cell in (args.cells.split(",") if args.cells else cells)]
    gather(run, jobs, ("change", "cell", "seed"), args)


if __name__ == "__main__":
    main()
