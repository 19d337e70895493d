"""Tables, page and figures of a profile say what its records say."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest

from robagg.lab import Run
from robagg.profile import Profile, gather
from robagg.profile.families import choose_families
from robagg.profile.figures import draw_families
from robagg.profile.tables import list_families, list_worst, tell, write_page

FAMILIES = choose_families(["alie-0.5", "bf"])[:2]
PROFILE = Profile(
    ("tq", "nnm >> tq"), families=FAMILIES, plain=("none", "optimal(jitter=0.5)"), seeds=(0, 1, 2), steps=0
)


def truth(run: Run) -> float:
    low = run.attack == "bf(scale=0.3)" and "nnm" not in run.rule
    return (50.0 if low else 90.0) + run.seed


@pytest.fixture
def found(complete: Any) -> Any:
    return gather(PROFILE, complete(PROFILE, truth)[0])


def test_points_are_sorted_by_strength_with_their_seeds(found: Any) -> None:
    points = found.points["tq", "bf"]
    assert [point.strength for point in points] == list(FAMILIES[1].strengths)
    assert points[1].cell.values == (50.0, 51.0, 52.0)


def test_records_of_other_settings_seeds_and_rules_do_not_count(complete: Any) -> None:
    records = complete(PROFILE, truth)[0]
    for other in (
        Profile(("krum",), families=FAMILIES, plain=(), seeds=(0,), steps=0),
        Profile(("tq",), families=FAMILIES, plain=(), seeds=(9,), steps=0),
        Profile(("tq",), families=FAMILIES, plain=(), seeds=(0,), steps=0, settings=(("rounds", 7),)),
        Profile(("tq",), families=FAMILIES, plain=(), seeds=(0,), steps=0, f=2),
    ):
        more = complete(other, lambda run: 1.0)[0]
        assert gather(PROFILE, records | more) == gather(PROFILE, records)


def test_strengths_that_another_profile_asked_for_count_too(complete: Any) -> None:
    records = complete(PROFILE, truth)[0]
    run = PROFILE.make("tq", "bf(scale=0.77)", 0)
    record = dict(next(iter(records.values()))) | {"key": run.key, "spec": run.describe(), "accuracy": 3.0}
    worst = gather(PROFILE, records | {run.key: record}).find_worst("tq", "bf")
    assert (worst.strength, worst.mean) == (0.77, 3.0)  # type: ignore[union-attr]


def test_the_interval_is_students_within_what_an_accuracy_can_be(found: Any) -> None:
    worst = found.find_worst_of_all("tq")
    half = 4.303 * statistics.stdev([50, 51, 52]) / 3**0.5
    assert worst.cell.interval == pytest.approx((51 - half, 51 + half), abs=0.01)
    assert found.points["tq", "alie-0.5"][0].cell.interval is None


def test_the_tables_name_attack_strength_seeds_and_the_lowest_run(found: Any) -> None:
    head, lines = list_worst(found)
    assert dict(zip(head, lines[0], strict=True)) == {
        "rule": "tq",
        "worst case": "51.0",
        "95 % interval": "48.5 to 53.5",
        "attack": "bf(scale=0.3)",
        "seeds": "3",
        "lowest run": "50.0",
        "no attack": "91.0",
        "runs": "16",
    }
    head, lines = list_families(found)
    assert head == ["attack", "tq", "nnm >> tq"]
    assert lines[1][1] == "51.0 (50.0 to 52.0) at scale=0.3"
    assert [line[0] for line in lines] == ["alie(jitter=0.5)", "bf", "none", "optimal(jitter=0.5)"]
    assert tell(None) == "-"


def test_the_page_shows_both_tables_and_every_figure(found: Any, tmp_path: Path) -> None:
    figures = draw_families(found, tmp_path)
    assert [path.name for path in figures] == ["alie-0.5.png", "bf.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in figures)
    page = write_page(found, [path.name for path in figures], quick=True)
    for part in (
        "a quick look",
        "n=20, f=6, rho(rho=0.5), 400 rounds, momentum 0.99, rate 1, seeds 0, 1, 2",
        "](bf.png)",
        "| tq | 51.0 |",
    ):
        assert part in page


def test_a_figure_of_the_same_records_is_the_same_file(found: Any, tmp_path: Path) -> None:
    one, two = (draw_families(found, tmp_path / name)[0].read_bytes() for name in ("a", "b"))
    assert one == two
