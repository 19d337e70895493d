"""What a user gets wrong in training is one sentence, which names the client; what can be meant is done."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import robagg as ra

Pair = tuple[torch.Tensor, torch.Tensor]


def make_clients(n: int = 5) -> list[Pair]:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(n, 20, 4, generator=generator), torch.randint(3, (n, 20), generator=generator)
    return [*zip(x, y, strict=True)]


def train(clients: Any, **given: Any) -> ra.Result:
    torch.manual_seed(0)
    return ra.train(nn.Linear(4, 3), clients, "tq", "ipm", **{"f": 1, "rounds": 2, "device": "cpu"} | given)


@pytest.mark.parametrize("wrap", [lambda pair: TensorDataset(*pair), lambda pair: DataLoader(TensorDataset(*pair), 7)])
def test_a_client_may_be_a_dataset_or_a_loader(wrap: Any) -> None:
    plain = train(make_clients()).model
    wrapped = train([wrap(pair) for pair in make_clients()]).model
    assert torch.equal(plain.weight, wrapped.weight)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_mode_without_gradients_around_it_does_not_matter(mode: Any) -> None:
    plain = train(make_clients()).model
    with mode():
        inside = train(make_clients()).model
    assert torch.equal(plain.weight, inside.weight)


@pytest.mark.parametrize(
    ("change", "given", "sentence"),
    [
        ((2, (torch.zeros(20, 4), torch.full((20,), 7))), {}, "the loss of client 2 cannot be computed: IndexError"),
        ((1, (torch.zeros(20, 4),)), {}, "client 1 must be .x, y., a Dataset or a DataLoader, got 1 parts"),
        ((3, {"x": 1}), {}, "client 3 must be .x, y., a Dataset or a DataLoader, got dict"),
        ((0, None), {}, "client 0 must be .x, y., a Dataset or a DataLoader, got NoneType"),
        ((), {"loss": lambda output, _: output**2}, "the loss of a batch must be one number, got shape"),
        ((), {"seed": "a"}, "seed must be a whole number from 0 on, got 'a'"),
        ((), {"seed": -1}, "seed must be a whole number from 0 on, got -1"),
        (
            (),
            {"schedule": [(10, 0.1)]},
            "schedule must be .point, factor. pairs .* one of the rounds 2 to 1 .* got ..10",
        ),
        ((), {"schedule": [(-1, 0.1)]}, "schedule must be .point, factor. pairs .* from 0 to below 1 .* got ..-1, 0.1"),
        (
            (),
            {"schedule": [(1.5, 0.1)], "rounds": 9},
            "one of the rounds 2 to 8 .round 1 is the share 1/9., or one of cosine, linear, or a function",
        ),
        ((), {"schedule": "cubic"}, "schedule must be .point, factor. pairs .*, got 'cubic'"),
        (
            (),
            {"schedule": lambda t: None},
            "the schedule must give a factor of the rate as a number, got None for round 0",
        ),
    ],
)
def test_what_cannot_be_trained_is_a_sentence(change: Any, given: Any, sentence: str) -> None:
    clients: list[Any] = [*make_clients()]
    if change:
        clients[change[0]] = change[1]
    with pytest.raises(ValueError, match=sentence):
        train(clients, **given)


@pytest.mark.parametrize("x", [torch.empty(5, 3, device="meta"), [torch.empty(3, device="meta")] * 5])
def test_rows_without_numbers_are_a_sentence(x: Any) -> None:
    with pytest.raises((TypeError, ra.QuorumError), match="meta device"):
        ra.TQ(f=1)(x)
