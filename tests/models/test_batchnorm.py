"""BatchNorm over clients: torch's numbers, by loop and by vmap, with no buffer touched on the way."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn import functional

from robagg.models import Flat, batchnorm, build

CASES = [
    (nn.BatchNorm1d, (6, 3)),
    (nn.BatchNorm1d, (6, 3, 4)),
    (nn.BatchNorm2d, (4, 3, 5, 5)),
    (nn.BatchNorm3d, (2, 3, 2, 3, 4)),
]


@pytest.mark.parametrize(("kind", "shape"), CASES)
@pytest.mark.parametrize("affine", [True, False])
def test_outputs_and_statistics_are_torchs(kind: type[nn.Module], shape: tuple[int, ...], affine: bool) -> None:
    torch.manual_seed(0)
    theirs = kind(3, affine=affine, momentum=1.0)
    ours = batchnorm.convert(nn.Sequential(copy.deepcopy(theirs)))
    x = 2 * torch.randn(shape) + 1
    assert torch.allclose(ours(x), theirs(x), atol=1e-6)
    wanted = torch.cat([theirs.running_mean, theirs.running_var])
    got = batchnorm.collect(ours)
    assert torch.allclose(got, wanted, atol=1e-5)
    assert batchnorm.read(ours).tolist() == [0, 0, 0, 1, 1, 1]
    batchnorm.apply(ours, wanted)
    assert torch.allclose(ours.eval()(x), theirs.eval()(x), atol=1e-6)


def test_conversion_keeps_parameters_buffers_mode_and_state_dict() -> None:
    model = build("resnet20").eval()
    before = dict(model.named_parameters())
    state = {name: value.clone() for name, value in model.state_dict().items()}
    assert batchnorm.convert(model) is model
    assert all(parameter is before[name] for name, parameter in model.named_parameters())
    assert list(model.state_dict()) == list(state)
    assert not any(module.training for module in model.modules())
    assert not any(type(module) is nn.BatchNorm2d for module in model.modules())
    assert len(batchnorm.layers(model)) == 21
    assert Flat(model).d == 272_474
    model.load_state_dict(state)


def test_a_layer_in_two_places_stays_one_layer() -> None:
    shared = nn.BatchNorm1d(2)
    model = batchnorm.convert(nn.Sequential(shared, nn.Sequential(shared), nn.ReLU(), shared))
    assert model[0] is model[1][0] is model[3]
    assert isinstance(model[0], batchnorm.ClientBatchNorm)
    assert batchnorm.convert(model)[0] is model[0]


def test_resnet_statistics_and_gradients_by_vmap_equal_the_loop() -> None:
    n, b = 3, 4
    model = batchnorm.convert(build("resnet20", shape=(3, 16, 16))).double()
    flat = Flat(model)
    vector = flat.flatten()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, b, 3, 16, 16, generator=generator, dtype=torch.float64)
    y = torch.randint(10, (n, b), generator=generator)
    running = batchnorm.read(model)

    def loss(vector: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        value = functional.cross_entropy(flat.forward(vector, x), y)
        return value, batchnorm.collect(model)

    together, statistics = vmap(grad(loss, has_aux=True), in_dims=(None, 0, 0))(vector, x, y)
    assert statistics.shape == (n, len(running))
    flat.bind(vector)
    for i in range(n):
        value = functional.cross_entropy(model(x[i]), y[i])
        assert torch.allclose(batchnorm.collect(model), statistics[i], atol=1e-9)
        assert torch.allclose(flat.join(torch.autograd.grad(value, flat.parameters)), together[i], atol=1e-9)
    assert torch.equal(batchnorm.read(model), running)
    assert not statistics.requires_grad


def test_a_whole_model_moves_its_running_statistics_as_torch_does() -> None:
    model = build("resnet20", shape=(3, 16, 16))
    twin = batchnorm.convert(copy.deepcopy(model))
    x = torch.randn(8, 3, 16, 16)
    model(x)
    twin(x)
    batchnorm.apply(twin, batchnorm.update(batchnorm.read(twin), batchnorm.collect(twin)[None]))
    assert torch.allclose(twin.eval()(x), model.eval()(x), atol=1e-4)


def test_collect_takes_each_batch_once() -> None:
    model = batchnorm.convert(nn.Sequential(nn.BatchNorm1d(2)))
    with pytest.raises(RuntimeError, match="layer '0' has seen no batch"):
        batchnorm.collect(model)
    model(torch.randn(3, 2))
    batchnorm.collect(model)
    with pytest.raises(RuntimeError, match="since the last collect"):
        batchnorm.collect(model)


def test_a_model_can_be_copied_after_a_vmap_that_collected_nothing() -> None:
    model = batchnorm.convert(nn.Sequential(nn.BatchNorm1d(2)))
    vmap(model)(torch.randn(2, 3, 2))
    assert copy.deepcopy(model)[0].statistics is None


def test_models_without_batchnorm_have_no_statistics() -> None:
    model = batchnorm.convert(build("mlp"))
    assert batchnorm.collect(model).shape == batchnorm.read(model).shape == (0,)
    batchnorm.apply(model, torch.empty(0))


def test_layers_without_running_statistics_keep_using_their_batch() -> None:
    model = batchnorm.convert(nn.Sequential(nn.BatchNorm1d(2, track_running_stats=False))).eval()
    x = torch.randn(5, 2) + 3
    assert torch.allclose(model(x).mean(0), torch.zeros(2), atol=1e-5)
    assert batchnorm.collect(model).shape == (0,)


def test_a_constant_channel_has_variance_zero() -> None:
    model = batchnorm.convert(nn.Sequential(nn.BatchNorm1d(1)))
    model(torch.full((4, 1), 3.0))
    mean, variance = batchnorm.collect(model).tolist()
    assert mean == pytest.approx(3)
    assert 0 <= variance < 1e-9


def test_the_median_withstands_what_the_mean_does_not() -> None:
    honest, none = torch.tensor([[1.0], [2.0], [3.0]]), torch.zeros(1)
    for lie in (float("nan"), float("inf"), -float("inf"), 1e30):
        rows = torch.cat([honest, torch.tensor([[lie]])])
        assert 1 <= batchnorm.update(none, rows, "median", momentum=1.0).item() <= 3
    assert batchnorm.update(none, honest[:2], "median", momentum=1.0).item() == 1.5
    assert batchnorm.update(none, honest, "mean", momentum=1.0).item() == 2
    with pytest.raises(ValueError, match="how must be mean or median, got 'mode'"):
        batchnorm.update(none, honest, "mode")


def test_update_is_a_moving_average() -> None:
    running = torch.tensor([1.0, 2.0])
    moved = batchnorm.update(running, torch.tensor([[2.0, 0.0]]), momentum=0.25)
    assert torch.allclose(moved, torch.tensor([1.25, 1.5]))
    assert running.tolist() == [1, 2]


class Odd(nn.BatchNorm1d):
    def forward(self, x: Tensor) -> Tensor:
        return x


def test_what_cannot_be_converted_or_applied_is_refused_in_a_sentence() -> None:
    with pytest.raises(TypeError, match="Odd has a forward of its own"):
        batchnorm.convert(nn.Sequential(Odd(2)))
    with pytest.raises(ValueError, match="lazy BatchNorm has no shape yet"):
        batchnorm.convert(nn.Sequential(nn.LazyBatchNorm1d()))
    with pytest.raises(ValueError, match=r"must be s=4 numbers as in the BatchNorm layers, got shape \(3,\)"):
        batchnorm.apply(batchnorm.convert(nn.Sequential(nn.BatchNorm1d(2))), torch.zeros(3))
    with pytest.raises(ValueError, match="more than one value per channel"):
        batchnorm.convert(nn.BatchNorm1d(2))(torch.zeros(1, 2))
