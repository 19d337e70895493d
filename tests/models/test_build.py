"""Models: the sizes the paper states, and initial weights that depend on the seed alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from robagg.models import CNN, MODELS, Flat, build

SHAPES = {"cnn": (1, 28, 28), "resnet20": (3, 32, 32), "mlp": (1, 8, 8), "logistic": (1, 8, 8)}
SIZES = {"cnn": 1_199_882, "resnet20": 272_474, "mlp": 64 * 64 + 64 + 640 + 10, "logistic": 650}


def test_every_model_is_tested_here() -> None:
    assert set(MODELS) == set(SHAPES)


@pytest.mark.parametrize("name", MODELS)
def test_parameter_counts_are_the_papers(name: str) -> None:
    assert Flat(build(name)).d == SIZES[name]


@pytest.mark.parametrize("name", MODELS)
def test_output_is_one_score_a_class(name: str) -> None:
    model = build(name).eval()
    assert model(torch.randn(3, *SHAPES[name])).shape == (3, 10)
    other = build(name, classes=4, shape=(2, 16, 16)).eval()
    assert other(torch.randn(3, 2, 16, 16)).shape == (3, 4)


def test_the_cnn_is_the_papers_layer_by_layer() -> None:
    model = build("cnn").eval()
    assert isinstance(model, CNN)
    x = torch.randn(2, 1, 28, 28)
    y = model.conv2(functional.relu(model.conv1(x)))
    y = model.fc1(functional.max_pool2d(y, 2).flatten(1))
    wanted = functional.log_softmax(model.fc2(functional.relu(y)), dim=1)
    assert torch.allclose(model(x), wanted, atol=1e-6)
    rates = [(type(m), m.p) for m in model if isinstance(m, nn.Dropout | nn.Dropout2d)]
    assert rates == [(nn.Dropout2d, 0.25), (nn.Dropout, 0.5)]


@pytest.mark.parametrize("name", MODELS)
def test_weights_depend_on_the_seed_alone(name: str) -> None:
    torch.manual_seed(1)
    one = Flat(build(name, seed=3)).flatten()
    torch.manual_seed(2)
    assert torch.equal(one, Flat(build(name, seed=3)).flatten())
    assert not torch.equal(one, Flat(build(name, seed=4)).flatten())


def test_a_generator_serves_as_a_seed() -> None:
    first, second = (Flat(build("mlp", seed=torch.Generator().manual_seed(7))).flatten() for _ in range(2))
    assert torch.equal(first, second)
    generator = torch.Generator().manual_seed(7)
    build("mlp", seed=generator)
    assert not torch.equal(first, Flat(build("mlp", seed=generator)).flatten())


def test_building_leaves_the_global_random_state_alone() -> None:
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    build("resnet20", seed=1)
    assert torch.equal(torch.rand(3), wanted)


def test_names_are_read_loosely_and_unknown_ones_listed() -> None:
    assert type(build("ResNet-20")).__name__ == "ResNet20"
    with pytest.raises(ValueError, match=r"unknown model 'resnet21'.*did you mean 'resnet20'"):
        build("resnet21")


@pytest.mark.parametrize("name", ["cnn", "resnet20"])
def test_images_too_small_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"must have the shape \(C, H, W\)"):
        build(name, shape=(1, 2, 2))
