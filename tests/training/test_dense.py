"""The dense batch gives what the loop over clients gives, or says why it does not run."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

from robagg.models import batchnorm
from robagg.models.build import build
from robagg.models.flat import Flat
from robagg.training.gradients.dense.engine import Dense
from robagg.training.gradients.dense.passes import Sink
from robagg.training.gradients.looped import Work
from training.dense_twin import agree, batches, dense, loop, still

SHAPES = {"cnn": (1, 28, 28), "mlp": (1, 8, 8), "logistic": (1, 8, 8), "resnet20": (3, 32, 32)}


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


@pytest.mark.parametrize("kind", CONVOLUTIONS)
@pytest.mark.parametrize("channels_last", [False, True])
def test_every_convolution_agrees(kind: str, channels_last: bool) -> None:
    layers = [
        nn.Conv2d(4, 6, **CONVOLUTIONS[kind]),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 10),
    ]
    x, y = batches((4, 9, 8))
    agree(nn.Sequential(*layers).double(), x, y, channels_last=channels_last)


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.out = nn.Conv2d(2, 2, 3, padding=1), nn.Linear(6, 6), nn.Linear(72, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.second(torch.tanh(self.second(torch.tanh(self.first(torch.tanh(self.first(x)))))))
        return self.out(x.flatten(1))


def test_a_layer_used_twice_gets_the_sum() -> None:
    x, y = batches((2, 6, 6))
    agree(Twice().double(), x, y)


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


class Deep(nn.Sequential):
    """Its first layer's gradients are some 1e-13 of the last one's."""

    def __init__(self) -> None:
        hidden = [layer for _ in range(16) for layer in (nn.Linear(5, 5), nn.Sigmoid())]
        super().__init__(*hidden, nn.Linear(5, 10))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + 0.5 * x.mean(0))


def test_gradients_that_are_small_are_compared_too() -> None:
    engine = dense(Deep().double(), example=batches((5,)))
    assert engine.note is not None
    assert "does the model mix samples" in engine.note


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
def test_nothing_is_read_back_to_the_host(name: str) -> None:
    # A fake tensor has no values: reading one raises.
    with FakeTensorMode():
        model = batchnorm.convert(build(name)).train()
        engine = dense(model, channels_last=True)
        x, y = torch.empty(3, 4, *SHAPES[name]), torch.empty(3, 4, dtype=torch.int64)
        gradients, losses, statistics = engine.run(x, y)
    assert (gradients.shape[0], losses.shape, statistics.shape[0]) == (3, (3,), 3)


def test_bfloat16_is_near_and_the_stack_keeps_its_dtype() -> None:
    x, y = batches((1, 28, 28), dtype=torch.float32)
    model = still(build("cnn"))
    wanted, engine = loop(model, x, y)[0], dense(model, precision="bfloat16")
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


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(ValueError, match="precision must be float32, tf32 or bfloat16, got 'int8'"):
        dense(nn.Linear(2, 2), precision="int8")


def test_a_sink_adds_its_second_gradient() -> None:
    sink = Sink(torch.full((2, 3), torch.nan))
    sink.put(torch.ones(2, 3))
    sink.put(torch.ones(2, 3))
    assert sink.rows.tolist() == [[2.0] * 3] * 2
