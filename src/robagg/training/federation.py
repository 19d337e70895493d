"""One round of federated training: gradients, momentum, the attack, the rule, the step."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from robagg._core.aggregate import Request, aggregate
from robagg._core.checks import is_whole
from robagg._core.contract import Attribution
from robagg._core.history import add_rows
from robagg._core.rule import Rule
from robagg._core.stack import read
from robagg._core.tolerance import QuorumError
from robagg.attacks.base import Attack, Setup, View, begin, play
from robagg.kernels.devices import on
from robagg.models import batchnorm
from robagg.models.flat import Flat
from robagg.training import seeds
from robagg.training.evaluate import Score, score
from robagg.training.faults import name_client
from robagg.training.gradients.choose import choose_engine
from robagg.training.gradients.looped import Work
from robagg.training.gradients.protocol import Engine
from robagg.training.losses import Loss, is_of_logits
from robagg.training.momenta import Momenta
from robagg.training.noted import Noted
from robagg.training.optimisers import Make, Optimiser
from robagg.training.root import Root
from robagg.training.settings import Settings
from robagg.training.shards import Shards

Clients = Sequence[tuple[Tensor, Tensor]]


class Federation:
    """One run: n clients of which the last f are Byzantine, one shared model, a rule and an attack."""

    @torch.inference_mode(False)  # what is made in a caller's could not be changed in place
    def __init__(
        self,
        model: nn.Module,
        clients: Clients,
        rule: Rule,
        attack: Attack,
        *,
        f: int,
        loss: Loss,
        classes: int,
        settings: Settings,
        augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
        root: tuple[Tensor, Tensor] | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        n = len(clients)
        if not is_whole(f) or not 0 <= f < n:
            raise ValueError(f"f must be a whole number from 0 to n-1, so that a client is honest, got n={n}, f={f}")
        if not is_whole(seed) or seed < 0:
            raise ValueError(f"seed must be a whole number from 0 on, got {seed!r}")
        self.n, self.f, self.h = n, f, n - f
        self.asked_count = settings.count_asked(n)
        for stage in rule.stages:
            stage.resolve_f(self.asked_count)
        self.rule, self.attack, self.settings, self.augment = rule, attack, settings, augment
        self.device = torch.device(device)
        self.model = batchnorm.convert(copy.deepcopy(model).to(self.device)).train()
        self.flat = Flat(self.model)
        self.w = self.flat.flatten()
        self.running = batchnorm.read(self.model).to(self.device)
        self.pace = batchnorm.read_momentum(self.model)
        with Attribution(attack, "wants_gradient"):
            self.wanting = [k for k in range(f) if attack.wants_gradient(k)]
        data = [*clients[: self.h]]
        with Attribution(attack, "poison"):
            data += [attack.poison(*clients[self.h + k], classes=classes, k=k) for k in self.wanting]
        self.shards = Shards(data, self.device)
        self.loss_of, self.classes = loss, classes
        self.active = [*range(self.h), *(self.h + k for k in self.wanting)]
        self.rate = torch.tensor(settings.rate, device=self.device, dtype=self.w.dtype)
        with on(self.device):
            work = Work(loss, settings.local_steps, self.rate, settings.weight_decay)
            try:
                self.gradients: Engine = choose_engine(
                    *(self.model, self.flat, self.w, work),
                    shards=self.shards,
                    precision=settings.precision,
                    walks=settings.client_optimiser is not None and settings.local_steps > 1,
                )
            except Exception as error:
                first = self.shards.offsets
                raise name_client(
                    self.model, loss, self.active, self.shards.x[first], self.shards.y[first], error
                ) from error
        self.optimisers: list[Optimiser] = []
        each = {i: own for i in self.active if (own := self._equip(settings.client_optimiser)) is not None}
        self.momenta = Momenta(self.flat, self.w, n, f, settings.momentum, wanted=bool(self.wanting), optimisers=each)
        self.sent = self.momenta.sent
        self.server = self._equip(settings.server_optimiser)
        self.root: Root | None = None
        if root is not None and any("root" in stage.anchors for stage in rule.stages):
            self.root = Root(root, self.flat, self.w, settings.momentum, self._equip(settings.client_optimiser))
        purposes = ("batches", "attack", "rule", "augment", *(["root"] if self.root else []))
        self.random = {name: seeds.generator(seed, name, self.device) for name in purposes}
        kind = (self.device, self.w.dtype, self.random["attack"])
        self.state = begin(attack, Setup(n, f, self.flat.d, *kind, settings.momentum))
        self.last = torch.zeros_like(self.w)
        wide = torch.promote_types(self.w.dtype, torch.float32)  # bfloat16 sums stand still after some 256 rows
        self.sums = self.w.new_zeros(n if rule.core.accumulates else 0, self.flat.d, dtype=wide)
        self.noted = Noted(n, self.device)
        self.alarm = torch.zeros((), device=self.device, dtype=torch.bool)
        self.asks = torch.Generator().manual_seed(seeds.derive(seed, "asked"))
        self.dropout_seed = seeds.derive(seed, "dropout")

    def _equip(self, make: Make | None) -> Optimiser | None:
        """An optimiser on the shared weights, if one is wanted."""
        if make is None:
            return None
        self.optimisers.append(Optimiser(make, self.flat, self.w, self.settings.rate))
        return self.optimisers[-1]

    def set_rate(self, rate: float) -> None:
        """The learning rate of the next rounds."""
        self.rate.fill_(rate)
        for optimiser in self.optimisers:
            optimiser.set_rate(rate)

    @property
    def captures(self) -> bool:
        """Whether a round may be one CUDA graph: nothing in it asks the host."""
        asks = self.asked_count < self.n or not all(stage.captures for stage in self.rule.stages)
        return self.device.type == "cuda" and not asks and not self.optimisers

    def round(self, t: int | None, *, verdict: bool) -> None:
        """One round; t is None inside a captured one, which does not know its number."""
        asked = self._ask()
        losses, statistics = self._compute(asked)
        self.noted.loss.copy_(losses.mean())
        last = self.last if self.rule.core.remembers else None
        if asked[-1] >= self.h:
            self._attack(asked, t, last)
        root = None if self.root is None else self._compute_root(self.root, asks=t is not None)
        stack = read(self.sent if len(asked) == self.n else [self.sent[i] for i in asked])
        alarm = self.alarm if t is None else None
        which = slice(None) if len(asked) == self.n else asked
        before = self.sums[which] if len(self.sums) else last
        request = Request(state=before, generator=self.random["rule"], verdict=verdict, alarm=alarm, root=root)
        stack, outcome = aggregate(self.rule, stack, request)
        if len(self.sums):
            self.sums[which] = add_rows(stack, before)
        value = outcome.values[0].to(self.w.dtype)
        if self.server is None:
            self.w.addcmul_(value, self.rate, value=-1)
        else:  # some of torch's optimisers change the gradient
            self.server.step(self.flat.views(value.clone()).values())
        if self.rule.core.remembers:
            self.last.copy_(value)
        if len(self.running):
            honest = sum(i < self.h for i in asked)
            rows = statistics if self.settings.statistics == "median" else statistics[:honest]
            how = "mean" if self.settings.statistics == "batch" else self.settings.statistics
            self.running.copy_(batchnorm.update(self.running, rows, how, self.pace))
        if verdict:
            self.noted.note(asked, stack, outcome)

    @property
    def notes(self) -> list[str]:
        """What people should know of how it is computed."""
        notes = [] if self.gradients.note is None else [self.gradients.note]
        if self.device.type == "cuda" and self.optimisers:
            notes.append("a round is not one CUDA graph: torch's optimisers ask the host")
        return notes

    def _ask(self) -> list[int]:
        """Who takes part in this round; at least one of them honest, for the attackers to look at."""
        if self.asked_count == self.n:
            return list(range(self.n))
        while True:
            asked = sorted(torch.randperm(self.n, generator=self.asks)[: self.asked_count].tolist())
            if asked[0] < self.h:
                return asked

    def _compute(self, asked: list[int]) -> tuple[Tensor, Tensor]:
        """The gradients of those asked, into the momenta; the honest ones' losses, and everybody's statistics."""
        at = self.shards.draw(self.settings.batch * self.settings.local_steps, self.random["batches"])
        busy = [i for i in self.active if i in set(asked)]
        if len(busy) < len(self.active):
            at = at[[self.active.index(i) for i in busy]]
        x, y = self.shards.x[at], self.shards.y[at]
        self.momenta.busy = busy
        try:
            losses, statistics = self._fill(x, y, self.momenta, self.random["augment"])
        except Exception as error:
            raise name_client(self.model, self.loss_of, busy, x, y, error) from error
        return losses[: sum(i < self.h for i in busy)], statistics

    def _compute_root(self, root: Root, *, asks: bool) -> Tensor:
        """(d,) The row that is trusted."""
        source = self.random["root"]
        try:
            self._fill(*root.draw(self.settings.batch * self.settings.local_steps, source), root.momenta, source)
        except Exception as error:
            raise ValueError(f"the row of the root data cannot be computed: {error}") from error
        if asks and not bool(torch.isfinite(root.row).all()):
            raise QuorumError("the row of the root data is not finite")
        return root.row

    def _fill(self, x: Tensor, y: Tensor, momenta: Momenta, source: torch.Generator) -> tuple[Tensor, Tensor]:
        """What batches x (clients, steps*b, ...), y make of the momenta; losses (clients,), statistics (clients, s)."""
        x = x if self.augment is None else self.augment(x, source)
        found = self.gradients.fill(x, y, momenta)
        if self.settings.local_steps == 1:
            momenta.walk()
        return found

    def _attack(self, asked: list[int], t: int | None, last: Tensor | None) -> None:
        """What the Byzantine clients among those asked send, into the last rows."""
        honest, byzantine = ([i for i in asked if (i < self.h) == side] for side in (True, False))
        everyone = len(asked) == self.n
        own = self.momenta.own if self.wanting else None
        view = View(
            self.sent[: self.h] if everyone else self.sent[honest],
            own if own is None or everyone else own[[i - self.h for i in byzantine]],
            n=len(asked),
            f=len(byzantine),
            generator=self.random["attack"],
            clients=None if everyone else tuple(i - self.h for i in byzantine),
            round=t,
            rule=self.rule,
            last=last,
        )
        rows, state = play(self.attack, view, self.state)
        for name, value in state.items():
            self.state[name].copy_(value)
        if everyone:
            self.sent[self.h :].copy_(rows)
        else:
            self.sent.index_copy_(0, torch.tensor(byzantine, device=self.device), rows)

    def score(self, test: tuple[Tensor, Tensor], loss: Loss | None = None) -> Score:
        """What the model makes of labelled samples on the federation's device."""
        batchnorm.apply(self.model, self.running)
        by_batch = self.settings.statistics == "batch"
        return score(self.model, test, loss, by_batch=by_batch, of_logits=is_of_logits(self.loss_of))

    def finite(self) -> bool:
        return bool(torch.isfinite(self.w).all())
