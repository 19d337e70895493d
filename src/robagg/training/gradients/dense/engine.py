"""Gradients of all clients from one dense batch: they share the weights, and only the weights' gradients differ."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn import functional

from robagg.models import batchnorm
from robagg.models.flat import Flat
from robagg.training.gradients.dense.convolution import channels_last
from robagg.training.gradients.dense.layers import forwards, routed
from robagg.training.gradients.dense.passes import Pass, Sink
from robagg.training.gradients.looped import Looped, Mapped, Work
from robagg.training.gradients.protocol import AtOnce
from robagg.training.losses import Loss

PRECISIONS = (None, "float32", "tf32", "bfloat16")


class Dense(AtOnce):
    """All clients as one batch, for models of Linear, Conv2d, BatchNorm, GroupNorm and layers without parameters.

    Any other model, and local steps, after which weights differ, run on `Mapped`; `note` says why. The model's own
    code is not asked to be of any form: its layers are looked up, and a small batch in double precision is compared
    with the loop over clients before the first round.

    The gradients handed out are rows of one stack that the next run overwrites.

    Args:
        model: in training mode, its BatchNorm layers converted.
        flat: the model as one vector.
        w: (d,), the shared weights, to which the model is bound.
        work: what a client does in a round.
        example: batches x (clients, b, ...), y to check the model on; None: it is not checked.
        precision: "float32", "tf32" (products), "bfloat16" (activations too; gradients are summed and laid down in the
            weights' own); None: as torch is set, which by default is TF32 in convolutions only.

    Example:
        >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        >>> flat = Flat(model)
        >>> dense = Dense(model, flat, flat.flatten(), Work(functional.cross_entropy))
        >>> gradients, losses, statistics = dense.run(torch.randn(5, 8, 3), torch.zeros(5, 8, dtype=torch.int64))
        >>> gradients.shape, losses.shape, statistics.shape
        (torch.Size([5, 26]), torch.Size([5]), torch.Size([5, 0]))
    """

    def __init__(
        self,
        model: nn.Module,
        flat: Flat,
        w: Tensor,
        work: Work,
        *,
        example: tuple[Tensor, Tensor] | None = None,
        precision: str | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            raise ValueError(f"precision must be float32, tf32 or bfloat16, got {precision!r}")
        self.model, self.flat, self.w, self.work, self.precision = model, flat, w, work, precision
        flat.bind(w)
        self.channels_last = w.device.type != "cpu"
        """Whether images are laid out so, which is the fastest on an accelerator."""
        self.fused = w.device.type == "cuda" and importlib.util.find_spec("triton") is not None
        """Whether layers may run on Triton kernels."""
        self.layers = [module for module in model.modules() if forwards(module) is not None]
        self.note = _unreached(model, flat, work)
        self.mapped: Mapped | None = None if self.note is None else Mapped(model, flat, w, work)
        self.stack = w.new_empty(0, 0)
        if example is not None and self.mapped is None:
            self._check(*example)

    def _check(self, x: Tensor, y: Tensor) -> None:
        """Compare with the loop over clients on a few samples of x (clients, b, ...), y; if unequal, use `Mapped`."""
        # Two clients with other samples each, so that a model that mixes samples shows.
        ends = [0, len(x) - 1]
        with torch.random.fork_rng(devices=[x.device] if x.device.type == "cuda" else []):
            self.note = _compare(self.model, self.work, x[ends, :4], y[ends, :4])
        if self.note is not None:
            self.mapped = Mapped(self.model, self.flat, self.w, self.work)

    def run(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self.mapped is not None:
            return self.mapped.run(x, y)
        through = self.begin(len(x))
        with self.precise():
            losses = self.forward(through, x, y)
            self.backward(through, losses)
        return self.stack[: len(x), : self.flat.d], losses.detach(), self._statistics(through)

    def begin(self, clients: int) -> Pass:
        """A pass that writes into the first rows of the stack."""
        if len(self.stack) < clients:
            # Rows begin on whole cache lines: a product writes them at full width then.
            self.stack = self.w.new_empty(clients, -(-self.flat.d // 32) * 32)
        views = self.flat.views(self.stack[:clients, : self.flat.d]).values()
        sinks: dict[Tensor, Sink] = {p: Sink(rows) for p, rows in zip(self.flat.parameters, views, strict=True)}
        anchor = self.w.new_zeros((), requires_grad=True)
        half = torch.bfloat16 if self.precision == "bfloat16" else None
        return Pass(clients, sinks, anchor, half, self.fused)

    def forward(self, through: Pass, x: Tensor, y: Tensor) -> Tensor:
        """The clients' losses (clients,)."""
        batch = x.flatten(0, 1)
        if self.channels_last and batch.ndim == 4:
            batch = channels_last(batch)
        # Layers cast for themselves; what is between them is torch's to choose. No cache: it would outlive a capture.
        cast = torch.autocast(x.device.type, through.dtype, cache_enabled=False) if through.dtype else nullcontext()
        with routed(self.layers, through), cast:
            output = self.model(batch)
        return _losses(self.work.loss, output.to(self.w.dtype), y)

    def backward(self, through: Pass, losses: Tensor) -> None:
        """All the way back; the weights' gradients are in the stack then."""
        if losses.requires_grad:
            torch.autograd.grad(losses.sum(), through.anchor, allow_unused=True)
        for sink in through.sinks.values():
            if not sink.written:
                sink.rows.zero_()
        if self.work.decay:
            self.stack[: through.clients, : self.flat.d].add_(self.w, alpha=self.work.decay)

    @contextmanager
    def precise(self) -> Iterator[None]:
        """Products as `precision` says, for both ways; afterwards torch is set as before."""
        if self.precision is None:
            yield
            return
        matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
        before = matmul.allow_tf32, cudnn.allow_tf32
        matmul.allow_tf32 = cudnn.allow_tf32 = self.precision != "float32"
        try:
            yield
        finally:
            matmul.allow_tf32, cudnn.allow_tf32 = before

    def _statistics(self, through: Pass) -> Tensor:
        kept = [through.statistics[layer] for layer in batchnorm.layers(self.model).values()]
        return torch.cat(kept, 1) if kept else self.w.new_empty(through.clients, 0)


def _losses(loss: Loss, output: Tensor, y: Tensor) -> Tensor:
    """Each client's loss."""
    if loss in (functional.cross_entropy, functional.nll_loss) and output.ndim == 2 and not y.is_floating_point():
        each = loss(output, y.flatten(), reduction="none").view(y.shape)
        return each.sum(1) / (y != -100).sum(1)  # torch's mark of labels that do not count
    mapped: Tensor = vmap(loss, randomness="different")(output.reshape(*y.shape[:2], *output.shape[1:]), y)
    return mapped


def _unreached(model: nn.Module, flat: Flat, work: Work) -> str | None:
    """Why the dense batch cannot do, as far as the model's layers show."""
    if work.steps > 1:
        return "local steps give every client weights of its own"
    ours = set(flat.parameters)
    for name, module in model.named_modules():
        for own, parameter in module.named_parameters(recurse=False):
            plain = forwards(module) is not None and own in ("weight", "bias")
            if parameter in ours and not plain:
                return f"layer {name!r} ({type(module).__name__}) is no plain Linear, Conv2d, BatchNorm or GroupNorm"
        if isinstance(module, nn.modules.batchnorm._NormBase) and forwards(module) is None:
            return f"layer {name!r} ({type(module).__name__}) takes statistics over the whole batch"
    return None


def _compare(model: nn.Module, work: Work, x: Tensor, y: Tensor) -> str | None:
    """What differs between the dense batch and the loop, in double precision and with no dropout; None: nothing."""
    twin = copy.deepcopy(model).double()
    for module in twin.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.eval()
    flat = Flat(twin)
    x, y = (part.double() if part.is_floating_point() else part for part in (x, y))
    dense = Dense(twin, flat, flat.flatten(), work)
    dense.channels_last = False
    plain = torch.empty(len(x), flat.d, dtype=torch.float64, device=x.device)
    try:
        # A layer that a model reads the weights of, but does not call, leaves a gradient by the ordinary way.
        through = dense.begin(len(x))
        losses = dense.forward(through, x, y)
        past = torch.autograd.grad(losses.sum(), flat.parameters, allow_unused=True, retain_graph=True)
        for name, gradient in zip(flat.names, past, strict=True):
            if gradient is not None:
                return f"parameter {name!r} is used outside its layer"
        dense.backward(through, losses)
    except (RuntimeError, ValueError, KeyError) as error:
        return f"the dense batch does not run: {error}"

    def use(i: int, parts: list[Tensor]) -> None:
        flat.join(parts, out=plain[i])

    Looped(twin, flat, dense.w, work).run(x, y, use)
    got = flat.views(dense.stack[: len(x), : flat.d])
    # A bias before a norm has no gradient but the rounding of what cancels, which is of the others' size.
    finite = flat.views(plain.nan_to_num(0, 0, 0))
    largest = max(float(value.abs().max()) for value in finite.values())
    for name, value in flat.views(plain).items():
        size = largest if name.endswith("bias") else float(finite[name].abs().max())
        if not torch.allclose(got[name], value, rtol=1e-6, atol=1e-9 * size, equal_nan=True):
            return f"parameter {name!r} has another gradient in a dense batch: does the model mix samples, or draw?"
    return None
