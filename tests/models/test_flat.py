"""Any model on one flat vector: the round trip, the bond, and gradients by loop and by vmap."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn import functional

from robagg.models import MODELS, Flat, build


class Tied(nn.Module):
    """One weight used in two places, and one that is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4, bias=False)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.frozen = nn.Linear(4, 2)
        self.frozen.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.frozen(self.second(self.first(x)))


@pytest.mark.parametrize("name", MODELS)
def test_flatten_and_views_are_a_round_trip_without_a_copy(name: str) -> None:
    flat = Flat(build(name))
    vector = flat.flatten()
    assert vector.shape == (flat.d,)
    views = flat.views(vector)
    for key, parameter in flat.model.named_parameters():
        assert torch.equal(views[key], parameter)
    vector.zero_()
    assert all(not view.any() for view in views.values())
    assert any(parameter.any() for parameter in flat.parameters)


def test_a_step_in_place_on_the_bound_vector_moves_the_model() -> None:
    flat = Flat(build("mlp"))
    x = torch.randn(3, 1, 8, 8)
    vector = flat.flatten() * 2
    flat.bind(vector)
    doubled = flat.forward(vector, x)
    assert torch.allclose(flat.model(x), doubled)
    vector.sub_(0.01)
    assert torch.allclose(flat.model(x), flat.forward(vector, x))
    assert not torch.allclose(flat.model(x), doubled)
    loss = flat.model(x).sum()
    assert flat.join(torch.autograd.grad(loss, flat.parameters)).shape == (flat.d,)


def test_tied_parameters_count_once_and_frozen_ones_not_at_all() -> None:
    flat = Flat(Tied())
    assert flat.d == 16 + 4
    x = torch.randn(5, 4)
    assert torch.allclose(flat.forward(flat.flatten(), x), flat.model(x))
    vector = torch.zeros(flat.d)
    flat.bind(vector)
    vector.fill_(0.5)
    assert flat.model.first.weight is flat.model.second.weight
    assert torch.allclose(flat.forward(vector, x), flat.model(x))


def test_join_writes_into_a_row() -> None:
    flat = Flat(nn.Linear(2, 1))
    rows = torch.ones(2, flat.d)
    flat.join([torch.tensor([[3.0, 4.0]]), torch.zeros(1)], out=rows[1])
    assert rows.tolist() == [[1, 1, 1], [3, 4, 0]]


def test_a_stack_of_vectors_is_viewed_as_stacks_of_parameters() -> None:
    flat = Flat(nn.Linear(3, 2))
    stack = torch.randn(5, flat.d)
    views = flat.views(stack)
    assert views["weight"].shape == (5, 2, 3)
    assert torch.equal(views["bias"], stack[:, 6:])
    assert views["bias"].data_ptr() == stack[:, 6:].data_ptr()


@pytest.mark.parametrize(("name", "shape"), [("cnn", (1, 28, 28)), ("mlp", (1, 8, 8))])
def test_gradients_by_loop_equal_gradients_by_vmap(name: str, shape: tuple[int, ...]) -> None:
    n, b = 3, 4
    flat = Flat(build(name).eval())
    vector = flat.flatten()
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(n, b, *shape, generator=generator), torch.randint(10, (n, b), generator=generator)

    def loss(vector: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(flat.forward(vector, x), y)

    together = vmap(grad(loss), in_dims=(None, 0, 0))(vector, x, y)
    flat.bind(vector)
    alone = torch.empty(n, flat.d)
    for i in range(n):
        value = functional.cross_entropy(flat.model(x[i]), y[i])
        flat.join(torch.autograd.grad(value, flat.parameters), out=alone[i])
    assert torch.allclose(together, alone, atol=1e-6, rtol=1e-4)


def test_clients_have_their_own_dropout_masks_under_vmap() -> None:
    flat = Flat(build("cnn"))
    x = torch.randn(1, 1, 28, 28).expand(4, 1, 1, 28, 28)
    outputs = vmap(flat.forward, in_dims=(None, 0), randomness="different")(flat.flatten(), x)
    assert len({row.detach().numpy().tobytes() for row in outputs}) == 4


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Flat(nn.ReLU()), "ReLU has no trainable parameter"),
        (lambda: Flat(nn.LazyLinear(2)), "weight has no shape yet"),
        (lambda: Flat(nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1).double()])), "one dtype and one device"),
        (
            lambda: Flat(nn.Linear(1, 1)).views(torch.zeros(3)),
            r"the vector must have d=2 numbers, got shape \(3,\)",
        ),
        (lambda: Flat(nn.Linear(1, 1)).bind(torch.zeros(4)[::2]), "must be contiguous and of one dimension"),
        (lambda: Flat(nn.Linear(1, 1)).bind(torch.zeros(2).double()), "torch.float32 on cpu like the parameters"),
    ],
)
def test_what_cannot_be_flat_is_refused_in_a_sentence(act: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        act()  # type: ignore[operator]
