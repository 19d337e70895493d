"""The dense batch gives what the loop over clients gives, or says why it does not run."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

from robagg.models import batchnorm
from robagg.models.build import build
from robagg.models.flat import Flat
from robagg.train import dense_convolution, dense_norm
from robagg.train.dense import Dense
from robagg.train.dense_layers import Sink
from robagg.train.gradients import Looped, Work

METHODS = [m for m in dense_convolution.METHODS if m != "implicit"]
SHAPES = {"cnn": (1, 28, 28), "mlp": (1, 8, 8), "logistic": (1, 8, 8), "resnet20": (3, 32, 32)}
WORK = Work(functional.cross_entropy)


def still(model: nn.Module) -> nn.Module:
    """Without dropout, BatchNorm converted."""
    for module in model.modules():
        if isinstance(module, nn.Dropout | nn.Dropout2d):
            module.p = 0.0
    return batchnorm.convert(model).train()


def batches(
    shape: tuple[int, ...], clients: int = 3, b: int = 4, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    return torch.randn(clients, b, *shape, dtype=dtype, generator=g), torch.randint(10, (clients, b), generator=g)


def loop(model: nn.Module, x: Tensor, y: Tensor, work: Work = WORK) -> tuple[Tensor, Tensor, Tensor]:
    flat = Flat(model)
    rows = torch.empty(len(x), flat.d, dtype=flat.parameters[0].dtype)
    losses, statistics = Looped(model, flat, flat.flatten(), work).run(x, y, lambda i, g: rows[i].copy_(flat.join(g)))
    return rows, losses, statistics


def dense(model: nn.Module, **options: object) -> Dense:
    flat = Flat(model)
    return Dense(model, flat, flat.flatten(), WORK, **options)


def agree(model: nn.Module, x: Tensor, y: Tensor, rtol: float = 1e-9, **options: object) -> Dense:
    wanted, engine = loop(model, x, y), dense(model, **options)
    got = engine.run(x, y)
    assert engine.note is None
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape
        assert bool(((a - b).flatten(1 if b.ndim > 1 else 0).norm(dim=-1) <= rtol * b.norm(dim=-1)).all())
    return engine


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("channels_last", [False, True])
def test_the_projects_models_agree_in_double(name: str, channels_last: bool) -> None:
    x, y = batches(SHAPES[name])
    agree(still(build(name)).double(), x, y, channels_last=channels_last)


@pytest.mark.parametrize("name", SHAPES)
def test_the_projects_models_agree_in_single(name: str) -> None:
    x, y = batches(SHAPES[name], b=8, dtype=torch.float32)
    # In float32 a ReLU of ResNet-20 may fall on the other side of 0 by rounding alone: against float64 each engine is
    # off by some 5e-3 then.
    agree(still(build(name)), x, y, rtol=2e-2 if name == "resnet20" else 1e-4)


CONVOLUTIONS = {
    "plain": {"kernel_size": 3},
    "no bias": {"kernel_size": 3, "bias": False},
    "stride": {"kernel_size": 3, "stride": 2, "padding": 1},
    "oblong": {"kernel_size": (1, 3), "stride": (2, 1), "padding": (0, 2)},
    "dilation": {"kernel_size": 3, "dilation": 2, "padding": 2},
    "same": {"kernel_size": 4, "padding": "same"},
    "circular": {"kernel_size": 3, "padding": 1, "padding_mode": "circular"},
    "groups": {"kernel_size": 3, "groups": 2},
    "one": {"kernel_size": 1},
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", CONVOLUTIONS)
@pytest.mark.parametrize("channels_last", [False, True])
def test_every_convolution_agrees(method: str, kind: str, channels_last: bool) -> None:
    layers = [
        nn.Conv2d(4, 6, **CONVOLUTIONS[kind]),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 10),
    ]
    x, y = batches((4, 9, 8))
    agree(nn.Sequential(*layers).double(), x, y, method=method, channels_last=channels_last)


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("channels_last", [False, True])
def test_group_norm_agrees(groups: int, affine: bool, channels_last: bool) -> None:
    """Of images, of sequences and of plain vectors, with weights of its own that are not 1 and 0."""
    norms = [nn.GroupNorm(groups, 6, affine=affine) for _ in range(3)]
    model = nn.Sequential(
        nn.Conv2d(4, 6, 3),
        norms[0],
        nn.ReLU(),
        nn.Flatten(2),
        norms[1],
        nn.Flatten(),
        nn.Linear(252, 6),
        norms[2] if groups < 6 else nn.Identity(),
        nn.Linear(6, 10),
    )
    g = torch.Generator().manual_seed(1)
    for norm in norms:
        for parameter in norm.parameters():
            parameter.data.normal_(generator=g)
    x, y = batches((4, 9, 8))
    agree(model.double(), 3 * x + 5, y, channels_last=channels_last)


@pytest.mark.parametrize("norm", [nn.BatchNorm2d(6), nn.GroupNorm(6, 6)])
def test_a_bias_that_a_norm_takes_away_is_no_difference(norm: nn.Module) -> None:
    """Its gradient is 0 but for rounding, which need not agree."""
    model = nn.Sequential(nn.Conv2d(4, 6, 3), norm, nn.ReLU(), nn.Flatten(), nn.Linear(252, 10))
    x, y = batches((4, 9, 8))
    engine = dense(batchnorm.convert(model.double()).train())
    engine.run(x, y)
    assert engine.note is None


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.out = nn.Conv2d(2, 2, 3, padding=1), nn.Linear(6, 6), nn.Linear(72, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.second(torch.tanh(self.second(torch.tanh(self.first(torch.tanh(self.first(x)))))))
        return self.out(x.flatten(1))


@pytest.mark.parametrize("method", METHODS)
def test_a_layer_used_twice_gets_the_sum(method: str) -> None:
    x, y = batches((2, 6, 6))
    agree(Twice().double(), x, y, method=method)


def test_two_layers_with_one_weight_get_the_sum() -> None:
    model = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 10))
    model[2].weight = model[0].weight
    x, y = batches((10,))
    agree(model.double(), x, y)


def test_frozen_and_unused_parameters() -> None:
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 10))
    model[0].weight.requires_grad_(False)
    model.add_module("spare", nn.Identity())
    model.spare.unused = nn.Linear(2, 2)
    x, y = batches((5,))
    agree(model.double(), x, y)


def test_a_loss_of_ones_own_and_labels_that_do_not_count() -> None:
    model = nn.Linear(5, 10).double()
    x, y = batches((5,))
    y[0, 1] = -100
    agree(model, x, y)
    flat, work = Flat(model), Work(lambda output, y: (output[:, 0] - y).square().mean())
    got = Dense(model, flat, flat.flatten(), work).run(x, y)
    torch.testing.assert_close(got[:2], loop(model, x, y, work)[:2])


class Scaled(nn.Module):
    def __init__(self, mixing: bool) -> None:
        super().__init__()
        self.inner, self.mixing = nn.Linear(5, 10), mixing

    def forward(self, x: Tensor) -> Tensor:
        if self.mixing:
            return self.inner(x - x.mean(0))
        return self.inner(x) * self.inner.weight.norm()


class Embedded(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(20, 10))


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Embedded(), r"layer '0' \(Embedding\)"),
        (nn.Sequential(nn.Linear(5, 10), nn.LayerNorm(10)), r"layer '1' \(LayerNorm\)"),
        (nn.utils.parametrizations.weight_norm(nn.Linear(5, 10)), "ParametrizationList"),
        (Scaled(mixing=False), "parameter 'inner.weight' is used outside its layer"),
        (Scaled(mixing=True), "mix samples"),
    ],
)
def test_what_it_cannot_do_it_names_and_leaves_to_vmap(model: nn.Module, reason: str) -> None:
    model = model.double()
    x, y = batches((5,))
    x = x.abs().long().clamp(max=8) if isinstance(model, Embedded) else x
    engine = dense(model, example=(x, y))
    assert engine.note is not None
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(engine.note)
    for a, b in zip(engine.run(x, y), loop(model, x, y), strict=True):
        torch.testing.assert_close(a, b)


def test_local_steps_are_left_to_vmap() -> None:
    model, (x, y) = nn.Linear(5, 10).double(), batches((5,))
    flat, work = Flat(model), Work(functional.cross_entropy, steps=2, rate=0.1)
    engine = Dense(model, flat, flat.flatten(), work)
    assert "local steps" in str(engine.note)
    torch.testing.assert_close(engine.run(x, y)[0], loop(model, x, y, work)[0])


def test_every_sample_has_its_own_dropout() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(64, 10, bias=False)).double()
    x, y = torch.ones(3, 1, 64, dtype=torch.float64), torch.zeros(3, 1, dtype=torch.int64)
    engine = dense(model, example=(x, y))
    gradients = engine.run(x, y)[0].view(3, 10, 64)
    hit = gradients[:, 0] != 0
    assert engine.note is None
    assert len({tuple(row.tolist()) for row in hit}) == 3
    assert 0.25 < float(hit.double().mean()) < 0.75


def test_fewer_clients_get_their_own_rows() -> None:
    model, (x, y) = still(build("mlp")).double(), batches((1, 8, 8), clients=5)
    engine = agree(model, x, y)
    pointer = engine.stack.data_ptr()
    torch.testing.assert_close(engine.run(x[[1, 3]], y[[1, 3]])[0], loop(model, x[[1, 3]], y[[1, 3]])[0])
    assert engine.stack.data_ptr() == pointer


@pytest.mark.parametrize("name", ["cnn", "resnet20"])
@pytest.mark.parametrize("method", ["unfold", "chunk", "shift"])
def test_nothing_is_read_back_to_the_host(name: str, method: str) -> None:
    # A fake tensor has no values: reading one raises.
    with FakeTensorMode():
        model = batchnorm.convert(build(name)).train()
        engine = dense(model, method=method, channels_last=True)
        engine.checked = True
        x, y = torch.empty(3, 4, *SHAPES[name]), torch.empty(3, 4, dtype=torch.int64)
        gradients, losses, statistics = engine.run(x, y)
    assert (gradients.shape[0], losses.shape, statistics.shape[0]) == (3, (3,), 3)


@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 4, 3), (6, 5, 7)])
@pytest.mark.parametrize("affine", [False, True])
def test_batch_norm_at_once_is_that_by_client(shape: tuple[int, ...], affine: bool) -> None:
    x, g = torch.randn(2, *shape, dtype=torch.float64) + 3
    weight, bias = torch.randn(2, 5, dtype=torch.float64) if affine else (None, None)
    seen = []
    for norm in (dense_norm.Looped(), dense_norm.Whole()):
        output, mean, inverse, statistics = norm.forward(x, weight, bias, 1e-5, 3)
        seen.append([output, mean, inverse, statistics, *norm.backward(g, x, mean, inverse, weight, 1e-5)])
    for a, b in zip(*seen, strict=True):
        torch.testing.assert_close(a, b)


def test_bfloat16_is_near_and_the_stack_keeps_its_dtype() -> None:
    x, y = batches((1, 28, 28), dtype=torch.float32)
    model = still(build("cnn"))
    wanted, engine = loop(model, x, y)[0], dense(model, precision="bfloat16", method="unfold")
    got = engine.run(x, y)[0]
    assert got.dtype == torch.float32
    assert float((got - wanted).norm() / wanted.norm()) < 0.1  # a pool that picks another of two near values moves much


def test_torch_is_set_as_before() -> None:
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    model, (x, y) = nn.Linear(5, 10), batches((5,), dtype=torch.float32)
    engine = dense(model, precision="tf32")
    with engine.precise():
        assert torch.backends.cuda.matmul.allow_tf32
    engine.run(x, y)
    assert (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == before
    assert "forward" not in model.__dict__


@pytest.mark.parametrize(("option", "value"), [("method", "magic"), ("precision", "int8")])
def test_unknown_options_are_refused(option: str, value: str) -> None:
    with pytest.raises(ValueError, match=option):
        dense(nn.Linear(2, 2), **{option: value})


def test_a_sink_adds_its_second_gradient() -> None:
    sink = Sink(torch.full((2, 3), torch.nan))
    sink.put(torch.ones(2, 3))
    sink.put(torch.ones(2, 3))
    assert sink.rows.tolist() == [[2.0] * 3] * 2


KERNELS = """
from interpreted import mend_interpreter
mend_interpreter()
import torch
from torch.nn import functional
from robagg.train import dense_convolution as dc, dense_norm, triton_norm, triton_pool
from robagg.train.dense_layers import Pass, Sink, max_pool
for n, b, c, o, k, s, p, d in (
    (2, 3, 1, 5, 3, 1, 0, 1), (2, 2, 18, 32, 3, 2, 1, 1), (3, 2, 16, 20, 3, 1, 1, 1), (2, 2, 50, 70, 2, 1, 1, 2),
    (2, 2, 6, 4, 1, 2, 0, 1), (2, 1, 70, 3, 3, 1, 2, 1), (2, 1, 64, 5, 3, 2, 0, 1),
    (1, 2, 64, 5, 3, 2, 2, 2), (1, 2, 4, 16, 3, 1, 1, 1),
):
    # Large images are summed in several ranges.
    size = (41, 33) if n == 1 else (6, 5)
    x, w = dc.channels_last(torch.randn(n * b, c, *size)), torch.randn(o, c, k, k)
    g = dc.channels_last(torch.randn_like(functional.conv2d(x, w, None, s, p, d)))
    geometry, sinks = dc.Geometry((k, k), (s, s), (p, p), (d, d), 1), []
    for method in ("implicit", "loop"):
        sinks.append((Sink(torch.empty(n, *w.shape)), Sink(torch.empty(n, o))))
        dc.lay_down(method, g, x, geometry, n, *sinks[-1])
        dc.lay_down(method, g, x, geometry, n, sinks[-1][0], None)  # a layer used twice adds
    for mine, other in zip(*sinks):
        torch.testing.assert_close(mine.rows, other.rows, rtol=1e-4, atol=1e-3)
for c in (3, 70):
    x, g = (torch.randn(6, c, 5, 5).contiguous(memory_format=torch.channels_last) * 2 + 3 for _ in range(2))
    weight, bias, seen = torch.randn(c), torch.randn(c), []
    for norm in (triton_norm.Fused(), dense_norm.Looped()):
        output, mean, inverse, statistics = norm.forward(x, weight, bias, 1e-5, 3)
        seen.append([output, mean, inverse, statistics, *norm.backward(g, x, mean, inverse, weight, 1e-5)])
    for mine, other in zip(*seen):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)
for shape, kernel in (((3, 5, 6, 8), (2, 2)), ((2, 1, 7, 7), (3, 2)), ((2, 64, 5, 4), (2, 4))):
    x = torch.randn(shape).mul(2).round().contiguous(memory_format=torch.channels_last).requires_grad_()  # with ties
    if shape[1] == 5:
        with torch.no_grad():
            x[1, 2, 3, 4] = torch.nan
    wanted = functional.max_pool2d(x, kernel)
    g = torch.randn_like(wanted)
    wanted.backward(g)
    out, where = triton_pool.forward(x.detach(), kernel)
    torch.testing.assert_close(out, wanted.detach(), rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(triton_pool.backward(g, where, x.shape, kernel), x.grad, rtol=0, atol=0)
through = Pass(1, {}, torch.zeros(()), fused=True)
for options in (
    {}, {"stride": 3}, {"padding": 1}, {"dilation": 2}, {"ceil_mode": True}, {"stride": (2, 1)}, {"padding": (1, 0)},
):
    layer = torch.nn.MaxPool2d(2, **options)
    x = torch.randn(2, 3, 7, 6).contiguous(memory_format=torch.channels_last).requires_grad_()
    wanted = layer(x)
    g = torch.randn_like(wanted)
    there = torch.autograd.grad(wanted, x, g)[0]
    output = max_pool(layer, through, x)
    assert ("_MaxPool" in type(output.grad_fn).__name__) == (not options), options
    torch.testing.assert_close(output, wanted, rtol=0, atol=0)
    torch.testing.assert_close(torch.autograd.grad(output, x, g)[0], there, rtol=0, atol=0)
both = max_pool(torch.nn.MaxPool2d(2, return_indices=True), through, x)
assert len(both) == 2
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_the_kernels_agree_in_tritons_interpreter() -> None:
    # In a process of its own: whether Triton interprets is settled when it is imported.
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", KERNELS], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
