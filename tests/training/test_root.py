"""The server's own row is what an honest client with the root data would send, and moves no other client's batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

import robagg as ra
from robagg import parse
from robagg.attacks import parse as parse_attack
from robagg.splits import IID
from robagg.tasks import Digits
from robagg.tasks.base import federate as federate_task
from robagg.training import Federation, Loop, Settings
from robagg.training.seeds import generator

Pair = tuple[Tensor, Tensor]


def make_data() -> tuple[list[Pair], Pair]:
    x = torch.randn(7, 40, 4, generator=torch.Generator().manual_seed(3))
    pairs = [(part, (part[:, 0] > 0).long()) for part in x]
    return pairs[:6], pairs[6]


def federate(rule: str, root: Pair | None, **given: Any) -> Federation:
    torch.manual_seed(0)
    settings = Settings(**{"rounds": 4, "batch": 8, "momentum": 0.5, "rate": 0.5, "evaluate_every": 2} | given)
    parts = (nn.Linear(4, 2), make_data()[0], parse(rule, f=2), parse_attack("ipm"))
    return Federation(*parts, f=2, loss=cross_entropy, classes=2, settings=settings, root=root)


def test_the_trusted_row_is_the_momentum_of_its_gradients() -> None:
    _, root = make_data()
    federation, draws, row = federate("fltrust", root), generator(0, "root"), torch.zeros(10)
    for t in range(3):
        w = federation.w.clone().requires_grad_()
        at = (torch.rand(1, 8, generator=draws, dtype=torch.float64)[0] * 40).long()
        loss = cross_entropy(root[0][at] @ w[:8].view(2, 4).T + w[8:], root[1][at])
        row = 0.5 * row + 0.5 * torch.autograd.grad(loss, w)[0]
        before = federation.w.clone()
        federation.round(t, verdict=True)
        assert federation.root is not None
        torch.testing.assert_close(federation.root.row, row)
        wanted = ra.FLTrust(f=2)(federation.sent, root=row)
        torch.testing.assert_close(before - federation.w, 0.5 * wanted)


def test_a_round_that_does_not_know_its_number_does_the_same() -> None:
    """As in a CUDA graph, where nothing may be asked."""
    one, other = (federate("monna", make_data()[1]) for _ in range(2))
    one.round(0, verdict=False)
    other.round(None, verdict=False)
    assert torch.equal(one.w, other.w) and not bool(other.alarm)


def test_root_data_move_no_batch_and_other_rules_do_not_look_at_them() -> None:
    found = [federate("cm", root) for root in (None, make_data()[1])]
    for federation in found:
        Loop(federation).run()
    assert found[1].root is None and torch.equal(found[0].w, found[1].w)
    plain, trusting = federate("cm", None), federate("monna", make_data()[1])
    plain.round(0, verdict=False), trusting.round(0, verdict=False)
    assert torch.equal(plain.sent, trusting.sent)


@pytest.mark.parametrize("rule", ["fltrust", "nnm >> monna"])
def test_a_run_with_root_data_goes_on_from_a_checkpoint(rule: str) -> None:
    clients, root = make_data()
    saved: list[dict[str, Any]] = []
    whole, again = federate(rule, root), federate(rule, root)
    Loop(whole, clients[0], checkpoint=saved.append).run()
    Loop(again, clients[0]).run(resume=saved[0])
    assert torch.equal(whole.w, again.w)


def test_train_takes_root_data_in_any_kind() -> None:
    clients, root = make_data()
    model, given = nn.Linear(4, 2), {"f": 2, "rounds": 20, "test": root, "momentum": 0.5, "rate": 0.5}
    results = [ra.train(model, clients, "fltrust", "ipm", root=r, **given) for r in (root, TensorDataset(*root))]
    assert results[0].accuracy == results[1].accuracy and results[0].accuracy > 90
    with pytest.raises(ValueError, match=r"root must be \(x, y\), a Dataset or a DataLoader, got dict"):
        ra.train(model, clients, "fltrust", root={}, rounds=1)
    with pytest.raises(ValueError, match="the root data must have as many labels as samples"):
        ra.train(model, clients, "fltrust", root=(root[0], root[1][:3]), rounds=1)


def test_root_data_that_the_loss_does_not_take_are_a_sentence() -> None:
    clients, root = make_data()
    with pytest.raises(ValueError, match=r"the row of the root data cannot be computed: Target [78] is out of bounds"):
        ra.train(nn.Linear(4, 2), clients, "fltrust", root=(root[0], root[1] + 7), rounds=1)


def test_a_root_that_is_not_finite_ends_the_run_with_a_note() -> None:
    clients, root = make_data()
    result = ra.train(nn.Linear(4, 2), clients, "fltrust", root=(root[0] * torch.inf, root[1]), rounds=3)
    assert (result.diverged, result.notes) == (0, ["stopped in round 0: the row of the root data is not finite"])


def test_a_task_puts_a_part_of_its_data_aside_for_the_server() -> None:
    pytest.importorskip("sklearn")
    rule = parse("fltrust", f=2)
    federation, rest = federate_task(
        Digits(), rule, parse_attack("ipm"), IID(), n=6, f=2, settings=Settings(root=100, rounds=2)
    )
    whole = Digits().load()
    assert federation.root is not None
    own = federation.root.shards.x
    assert len(own) == 100 and len(rest.train_y) == len(whole.train_y) - 100
    rows = {tuple(row) for row in torch.cat([own, rest.train_x]).flatten(1).tolist()}
    assert rows == {tuple(row) for row in whole.train_x.flatten(1).tolist()}
    with pytest.raises(ValueError, match="root must leave the clients some of the 1438 training samples, got 1438"):
        federate_task(Digits(), rule, parse_attack("ipm"), IID(), n=6, f=2, settings=Settings(root=1438))
