"""Backdoors: what is poisoned, what is sent, and that the model answers to the trigger."""

from __future__ import annotations

from itertools import chain

import pytest
import torch
from torch import Tensor, nn

import robagg as ra
from robagg.attacks import DBA, Backdoor, Mixed, Neurotoxin, Replacement, Varying
from robagg.attacks.base import Setup, View


def draw(rows: int, d: int, number: int = 0) -> Tensor:
    return torch.randn(rows, d, dtype=torch.float64, generator=torch.Generator().manual_seed(number))


def images(count: int = 10, side: int = 6) -> tuple[Tensor, Tensor]:
    return torch.rand(count, 1, side, side, generator=torch.Generator().manual_seed(1)), torch.arange(count) % 5


def changed(before: Tensor, after: Tensor) -> list[tuple[int, int]]:
    """Row and column of each pixel that differs between two images (1, H, W)."""
    return [(int(i), int(j)) for _, i, j in (before != after).nonzero().tolist()]


@pytest.mark.parametrize(("share", "count"), [(0.5, 5), (0.1, 1), (0.25, 2), (1.0, 10), (0.3, 3)])
def test_a_share_of_the_samples_gets_the_trigger_and_the_label(share: float, count: int) -> None:
    x, y = images()
    bad, labels = Backdoor(target=2, share=share, size=2).poison(x, y, classes=5, k=1)
    touched = [i for i in range(10) if changed(x[i], bad[i])]
    assert len(touched) == count
    for i in range(10):
        if i in touched:
            assert set(changed(x[i], bad[i])) <= {(4, 4), (4, 5), (5, 4), (5, 5)}
            assert bad[i, 0, 4:, 4:].tolist() == [[float(x.max())] * 2] * 2
            assert labels[i] == 2
        else:
            assert labels[i] == y[i]


def test_the_parts_of_a_distributed_trigger_make_the_whole() -> None:
    x, y = torch.zeros(1, 1, 6, 6), torch.tensor([1])
    x[0, 0, 0, 0] = 1
    attack = DBA(share=1.0, parts=4)
    parts = [changed(x[0], attack.poison(x, y, classes=5, k=k)[0][0]) for k in range(8)]
    assert parts[:4] == parts[4:]
    assert sorted(chain(*parts[:4])) == [(i, j) for i in (3, 4, 5) for j in (3, 4, 5)]
    assert all(parts[:4])
    shown, labels = attack.goal(x, y, classes=5) or (x, y)
    assert changed(x[0], shown[0]) == sorted(chain(*parts[:4]))
    assert labels.tolist() == [0]


@pytest.mark.parametrize(
    "attack", [Backdoor(target=3), Varying("backdoor(target=3)"), Mixed("alie+backdoor(target=3)")]
)
def test_the_goal_leaves_out_samples_that_have_the_target_already(attack: ra.Attack) -> None:
    x, y = images()
    shown, labels = attack.goal(x, y, classes=5) or (x, y)
    assert len(shown) == 8
    assert labels.tolist() == [3] * 8
    assert torch.equal(shown[:, :, :3], x[y != 3][:, :, :3])


def test_flat_samples_are_images_of_one_line() -> None:
    x = torch.rand(3, 7, generator=torch.Generator().manual_seed(0))
    shown, _ = Backdoor(target=1, size=2).goal(x, torch.zeros(3, dtype=torch.int64), classes=2) or (x, x)
    assert torch.equal(shown[:, :5], x[:, :5])
    assert (shown[:, 5:] == x.max()).all()


@pytest.mark.parametrize("shape", [(4, 8), (4, 1, 2, 2)])
def test_every_client_has_a_pixel_of_a_trigger_of_fewer_pixels_than_parts(shape: tuple[int, ...]) -> None:
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    x[0] = 1
    attack, y = DBA(share=1.0, size=3, parts=6), torch.ones(4, dtype=torch.int64)
    goal, _ = attack.goal(x, y, classes=2) or (x, y)
    parts = [attack.poison(x, y, classes=2, k=k)[0] != x for k in range(6)]
    assert all(part[i].any() for part in parts for i in range(1, 4))
    assert torch.equal(torch.stack(parts).any(0), goal != x)


def test_samples_without_pixels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"samples for a trigger must be \(N, ..., H, W\) or \(N, d\), got \(4,\)"):
        Backdoor().poison(torch.ones(4), torch.zeros(4, dtype=torch.int64), classes=2, k=0)


def test_rows_are_momenta_as_the_honest_ones_are() -> None:
    attack, f, d = Backdoor(scale=2.0), 2, 4
    state, kept = attack.start(Setup(6, f, d, dtype=torch.float64, momentum=0.9)), torch.zeros(f, d)
    for number in range(3):
        own = draw(f, d, number)
        kept = 0.9 * kept + 0.1 * own
        sent, state = attack.craft(View(draw(4, d), own, 6, f), state)
        torch.testing.assert_close(sent, 2 * kept)


def test_replacement_makes_the_mean_the_byzantine_clients_own() -> None:
    honest, own = torch.zeros(5, 3, dtype=torch.float64), draw(2, 3)
    sent = Replacement(momentum=0)(honest, f=2, own=own)
    torch.testing.assert_close(torch.cat([honest, sent]).mean(0), own.mean(0))
    torch.testing.assert_close(Replacement(scale=2.0, momentum=0)(honest, f=2, own=own), 2 * own)
    assert "n/f = 3.33" in Replacement().describe(20, 6)


def test_neurotoxin_leaves_alone_what_honest_clients_move_most() -> None:
    honest, own = draw(6, 20), draw(2, 20, 1)
    sent = Neurotoxin(top=0.25, momentum=0)(honest, f=2, own=own)
    most = sorted(range(20), key=lambda j: -abs(float(honest[:, j].sum())))[:5]
    for j in range(20):
        assert sent[:, j].tolist() == ([0, 0] if j in most else own[:, j].tolist())


def learn(attack: str, rule: str) -> tuple[float, float]:
    """The accuracy on the test set and on the attack's goal, after training on bars of two directions."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(2, (800,), generator=generator)
    x = 0.3 * torch.rand(800, 1, 6, 6, generator=generator)
    at = torch.randint(3, (800,), generator=generator)
    for i in range(800):
        bar = (slice(None), at[i]) if y[i] else (at[i], slice(None))
        x[i, 0][bar] += 0.7
    clients = [(x[i:600:10], y[i:600:10]) for i in range(10)]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 2))
    test = (x[600:], y[600:])
    settings = {"rounds": 150, "momentum": 0.9, "rate": 0.5, "batch": 16}
    result = ra.train(model, clients, rule, attack, f=3, test=test, **settings)
    shown, labels = ra.attacks.parse(attack).goal(*test, classes=2) or test
    success = 100 * float((result.model(shown).argmax(1) == labels).double().mean())
    assert result.accuracy is not None
    return result.accuracy, success


@pytest.mark.parametrize("attack", ["backdoor", "dba(parts=3)", "replacement", "neurotoxin"])
def test_the_mean_learns_the_trigger_and_keeps_its_accuracy(attack: str) -> None:
    accuracy, success = learn(attack, "mean")
    assert accuracy > 90
    assert success > 60


def test_without_poisoned_data_the_trigger_does_nothing() -> None:
    accuracy, success = learn("backdoor(share=1e-9)", "mean")
    assert accuracy > 95
    assert success < 25


def test_labels_that_are_no_classes_are_refused() -> None:
    x, y = images()
    with pytest.raises(ValueError, match="target must be one of 5 labels, 0 to 4, got 7"):
        Backdoor(target=7).poison(x, y, classes=5, k=0)
    with pytest.raises(ValueError, match=r"labels must be integers \(N,\), got torch.float32"):
        Backdoor().poison(x, y.float(), classes=5, k=0)
