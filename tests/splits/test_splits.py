"""Who holds what: every split is held to the same promises, and each to its own."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from robagg.data import histogram
from robagg.splits import IID, Dirichlet, OneLabel, Rho, Split, splits

LABELS = torch.arange(10).repeat(60)[torch.randperm(600, generator=torch.Generator().manual_seed(9))]
EVERY = [Rho(), Rho(0.0), Rho(1.0), IID(), Dirichlet(), Dirichlet(0.01), OneLabel()]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("rule", EVERY, ids=str)
def test_every_split_deals_disjoint_honest_shards_and_leaves_no_one_empty(rule: Split) -> None:
    n, f = 20, 6
    shards = rule.split(LABELS, n, f, generator=seeded())
    assert len(shards) == n
    honest = torch.cat(shards[: n - f])
    assert len(honest) == len(set(honest.tolist())) == 600
    assert all(shard.dtype == torch.int64 and len(shard) > 0 for shard in shards)
    assert all(len(shard) == 600 // 14 == len(set(shard.tolist())) for shard in shards[n - f :])


@pytest.mark.parametrize("rule", EVERY, ids=str)
def test_every_split_follows_its_generator_alone(rule: Split) -> None:
    torch.manual_seed(1)
    one = rule.split(LABELS, 10, 3, generator=seeded(5))
    torch.manual_seed(2)
    same = rule.split(LABELS, 10, 3, generator=seeded(5))
    other = rule.split(LABELS, 10, 3, generator=seeded(6))
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("rule", EVERY, ids=str)
def test_every_split_reads_back_from_its_text(rule: Split) -> None:
    assert splits.parse(str(rule)) == rule


def test_splits_are_found_by_name() -> None:
    assert set(splits.classes()) == {"rho", "iid", "dirichlet", "onelabel"}
    assert splits.parse("dirichlet(alpha=0.1)") == Dirichlet(alpha=0.1)
    assert splits.parse("one-label") == OneLabel()
    with pytest.raises(ValueError, match="unknown split 'roh'"):
        splits.parse("roh")


@given(
    n=st.integers(1, 30),
    share=st.floats(0, 0.99),
    rho=st.floats(0, 1),
    count=st.integers(30, 200),
    seed=st.integers(0, 99),
)
@settings(max_examples=80, deadline=None)
def test_rho_partitions_the_data_into_equal_shards(n: int, share: float, rho: float, count: int, seed: int) -> None:
    f = int(share * n)
    labels = torch.randint(7, (count,), generator=seeded(seed))
    shards = Rho(rho).split(labels, n, f, generator=seeded(seed))
    h = n - f
    assert sorted(torch.cat(shards[:h]).tolist()) == list(range(count))
    sizes = [len(shard) for shard in shards]
    assert max(sizes) - min(sizes) <= 1


@given(n=st.integers(1, 30), share=st.floats(0, 0.99), alpha=st.floats(1e-4, 1e4), count=st.integers(30, 100))
@settings(max_examples=80, deadline=None)
def test_dirichlet_partitions_the_data_and_leaves_no_one_empty(n: int, share: float, alpha: float, count: int) -> None:
    f = int(share * n)
    labels = torch.arange(count) % 3
    shards = Dirichlet(alpha).split(labels, n, f, generator=seeded())
    assert min(len(shard) for shard in shards) >= 1
    assert sorted(torch.cat(shards[: n - f]).tolist()) == list(range(count))


def test_dirichlet_fills_everyone_when_there_is_one_sample_each() -> None:
    shards = Dirichlet(0.001).split(torch.zeros(25, dtype=torch.int64), 25, 0, generator=seeded())
    assert [len(shard) for shard in shards] == [1] * 25


def test_rho_equals_its_definition_in_plain_loops() -> None:
    n, f, rho = 7, 2, 0.4
    h, count = n - f, 600
    order = torch.randperm(count, generator=seeded(3)).tolist()
    even = order[: round((1 - rho) * count)]
    rest = sorted(order[len(even) :], key=lambda i: int(LABELS[i]))
    wanted: list[list[int]] = [[] for _ in range(h)]
    for i in range(h):
        wanted[i] += even[i * len(even) // h : (i + 1) * len(even) // h]
        wanted[i] += rest[i * len(rest) // h : (i + 1) * len(rest) // h]
    shards = Rho(rho).split(LABELS, n, f, generator=seeded(3))
    assert [shard.tolist() for shard in shards[:h]] == wanted


def test_rho_zero_is_iid() -> None:
    for a, b in zip(
        Rho(0.0).split(LABELS, 8, 2, generator=seeded()), IID().split(LABELS, 8, 2, generator=seeded()), strict=True
    ):
        assert torch.equal(a, b)


def test_rho_one_is_sorted_by_label() -> None:
    shards = Rho(1.0).split(LABELS, 14, 4, generator=seeded())
    assert LABELS[torch.cat(shards[:10])].tolist() == sorted(LABELS.tolist())
    assert all(len(set(LABELS[shard].tolist())) == 1 for shard in shards[:10])


def test_byzantine_shards_are_iid_whatever_the_split() -> None:
    labels = torch.arange(10).repeat(1000)
    for rule in (Rho(1.0), OneLabel(), Dirichlet(0.01)):
        shards = rule.split(labels, 12, 2, generator=seeded())
        counts = histogram(labels, shards[10:], 10)
        assert (counts > 60).all()
        assert (counts < 140).all()
        assert not torch.equal(shards[10], shards[11])


def test_dirichlet_is_close_to_even_for_large_alpha_and_to_one_holder_for_small() -> None:
    labels = torch.arange(10).repeat(1000)
    even = histogram(labels, Dirichlet(1e5).split(labels, 5, 0, generator=seeded()), 10)
    assert ((even - 200).abs() < 10).all()
    sharp = histogram(labels, Dirichlet(1e-3).split(labels, 5, 0, generator=seeded()), 10)
    assert (sharp.max(dim=0).values > 990).sum() >= 9


def test_one_label_gives_each_client_one_label_and_shares_it_evenly() -> None:
    shards = OneLabel().split(LABELS, 15, 0, generator=seeded())
    assert [set(LABELS[shard].tolist()) for shard in shards] == [{i % 10} for i in range(15)]
    assert [len(shard) for shard in shards] == [30] * 5 + [60] * 5 + [30] * 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rho(1.5), r"rho must lie in \[0, 1\], got 1.5"),
        (lambda: Rho(float("nan")), r"rho must lie in \[0, 1\], got nan"),
        (lambda: Dirichlet(0), "alpha must be a finite number above 0, got 0"),
        (lambda: IID().split(LABELS, 3, 3, generator=seeded()), "so that a client is honest, got n=3, f=3"),
        (
            lambda: IID().split(LABELS[:4], 9, 2, generator=seeded()),
            "labels must be one or more for each of 7 honest clients, got 4",
        ),
        (lambda: Dirichlet().split(LABELS.float(), 9, 2, generator=seeded()), "labels must be one integer per sample"),
        (
            lambda: OneLabel().split(torch.tensor([0, 1, 1, 1]), 4, 0, generator=seeded()),
            "label 0 must have a sample for each of its 2 honest clients, got 1",
        ),
    ],
)
def test_impossible_splits_are_refused_in_a_sentence(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
