"""One round of federated training: gradients, momentum, the attack, the rule, the step."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from robagg._core.aggregate import Request, aggregate
from robagg._core.checks import is_whole
from robagg._core.contract import Attribution
from robagg._core.history import add_rows
from robagg._core.outcome import Outcome, Treatment
from robagg._core.rule import Rule
from robagg._core.stack import read
from robagg.attacks.base import Attack, Setup, View, begin, play
from robagg.kernels.devices import on
from robagg.models import batchnorm
from robagg.models.flat import Flat
from robagg.training import seeds
from robagg.training.evaluate import Score, score
from robagg.training.faults import name_client
from robagg.training.gradients.choose import choose_engine
from robagg.training.gradients.looped import Loss, Work
from robagg.training.gradients.protocol import Engine
from robagg.training.momenta import Momenta
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
            work = Work(loss, settings.local_steps, self.rate)
            try:
                self.gradients: Engine = choose_engine(
                    self.model, self.flat, self.w, work, shards=self.shards, precision=settings.precision
                )
            except Exception as error:
                first = self.shards.offsets
                raise name_client(
                    self.model, loss, self.active, self.shards.x[first], self.shards.y[first], error
                ) from error
        self.momenta = Momenta(self.flat, self.w, n, f, settings.momentum, wanted=bool(self.wanting))
        self.sent = self.momenta.sent
        purposes = ("batches", "attack", "rule", "augment")
        self.random = {name: seeds.generator(seed, name, self.device) for name in purposes}
        kind = (self.device, self.w.dtype, self.random["attack"])
        self.state = begin(attack, Setup(n, f, self.flat.d, *kind, settings.momentum))
        self.last = torch.zeros_like(self.w)
        self.sums = self.w.new_zeros(n if rule.core.accumulates else 0, self.flat.d)  # what each client has sent
        # What the last round showed, in fixed places so that a captured round can write it.
        self.loss = torch.zeros((), device=self.device)
        self.tau = torch.zeros((), device=self.device, dtype=torch.float64)
        self.weights = torch.zeros(n, device=self.device, dtype=torch.float64)
        self.dropped = torch.zeros(n, device=self.device, dtype=torch.bool)
        self.reach = torch.zeros(n, device=self.device, dtype=torch.float64)
        self.alarm = torch.zeros((), device=self.device, dtype=torch.bool)
        self.asks = torch.Generator().manual_seed(seeds.derive(seed, "asked"))
        self.dropout_seed = seeds.derive(seed, "dropout")
        self.has_tau = False

    def round(self, t: int | None, *, verdict: bool) -> None:
        """One round; t is None inside a captured one, which does not know its number."""
        asked = self._ask()
        honest = [i for i in asked if i < self.h]
        byzantine = [i for i in asked if i >= self.h]
        losses, statistics = self._compute(asked)
        self.loss.copy_(losses.mean())
        everyone = len(asked) == self.n
        last = self.last if self.rule.core.remembers else None
        if byzantine:
            seen = self.sent[: self.h] if everyone else self.sent[honest]
            own = self.momenta.own if self.wanting else None
            own = own if own is None or everyone else own[[i - self.h for i in byzantine]]
            view = View(
                seen,
                own,
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
            self.sent[self.h :].copy_(rows) if everyone else self.sent.index_copy_(
                0, torch.tensor(byzantine, device=self.device), rows
            )
        stack = read(self.sent if everyone else [self.sent[i] for i in asked])
        alarm = self.alarm if t is None else None
        which = slice(None) if everyone else asked
        before = self.sums[which] if len(self.sums) else last
        request = Request(state=before, generator=self.random["rule"], verdict=verdict, alarm=alarm)
        stack, outcome = aggregate(self.rule, stack, request)
        if len(self.sums):
            self.sums[which] = add_rows(stack, before)
        value = outcome.values[0].to(self.w.dtype)
        self.w.addcmul_(value, self.rate, value=-1)
        if self.rule.core.remembers:
            self.last.copy_(value)
        if len(self.running):
            rows = statistics if self.settings.statistics == "median" else statistics[: len(honest)]
            how = "mean" if self.settings.statistics == "batch" else self.settings.statistics
            self.running.copy_(batchnorm.update(self.running, rows, how, self.pace))
        if verdict and outcome.weights is not None:
            self._note([asked[k] for k in stack.kept], asked, outcome.weights, outcome)

    @property
    def notes(self) -> list[str]:
        """What people should know of how it is computed."""
        return [] if self.gradients.note is None else [self.gradients.note]

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
        if self.augment is not None:
            x = self.augment(x, self.random["augment"])
        self.momenta.busy = busy
        try:
            losses, statistics = self.gradients.fill(x, y, self.momenta)
        except Exception as error:
            raise name_client(self.model, self.loss_of, busy, x, y, error) from error
        return losses[: sum(i < self.h for i in busy)], statistics

    def _note(self, who: list[int], asked: list[int], weights: Tensor, outcome: Outcome) -> None:
        """Lay down what the rule made of those who were heard in this round."""
        out = weights == 0 if outcome.outside is None or outcome.treatment is Treatment.CLIPPED else outcome.outside
        reach = torch.full_like(weights, torch.nan) if outcome.reach is None else outcome.reach
        if len(who) == self.n:
            self.weights.copy_(weights)
            self.dropped.copy_(out)
            self.reach.copy_(reach)
        else:
            self.weights.fill_(torch.nan)
            self.weights[asked] = 0
            self.weights[who] = weights
            self.dropped.fill_(True)
            self.dropped[who] = out
            self.reach.fill_(torch.nan)
            self.reach[who] = reach
        self.has_tau = outcome.tau is not None
        if outcome.tau is not None:
            self.tau.copy_(outcome.tau)

    def score(self, test: tuple[Tensor, Tensor], loss: Loss | None = None) -> Score:
        """What the model makes of labelled samples on the federation's device."""
        batchnorm.apply(self.model, self.running)
        return score(self.model, test, loss, by_batch=self.settings.statistics == "batch")

    def _kept(self) -> dict[str, Tensor]:
        """The tensors that the next rounds depend on, by names that no attack's own can meet."""
        own = {f"state.{name}": value for name, value in self.state.items()}
        # A forward pass may change buffers, such as a spectral norm's.
        own |= {f"buffer.{name}": value for name, value in self.model.named_buffers()}
        return own | {name: getattr(self, name) for name in ("w", "sent", "last", "running", "sums")}

    def finite(self) -> bool:
        return bool(torch.isfinite(self.w).all())

    def snapshot(self) -> dict[str, Any]:
        """All that the next rounds depend on, for going back."""
        random = {name: g.get_state() for name, g in self.random.items()} | {"asks": self.asks.get_state()}
        random["dropout"] = (
            torch.get_rng_state() if self.device.type == "cpu" else torch.cuda.get_rng_state(self.device)
        )
        return {"tensors": {name: value.clone() for name, value in self._kept().items()}, "random": random}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        kept = self._kept()
        for name, value in saved["tensors"].items():
            place = kept.get(name)
            fits = place is not None and (place.shape, place.dtype) == (value.shape, value.dtype)
            if fits or not name.startswith("buffer."):
                kept[name].copy_(value)  # in place, where a captured round writes
            else:  # a forward pass makes it again, in whatever size it needs
                owner, _, own = name.removeprefix("buffer.").rpartition(".")
                self.model.get_submodule(owner).register_buffer(own, value.to(self.device, copy=True))
        random = saved["random"]
        for name, g in self.random.items():
            g.set_state(random[name])
        self.asks.set_state(random["asks"])
        if self.device.type == "cpu":
            torch.set_rng_state(random["dropout"])
        else:
            torch.cuda.set_rng_state(random["dropout"], self.device)
