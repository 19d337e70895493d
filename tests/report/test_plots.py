"""Figures show the means, bands and names that the tables have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from robagg.report import plot, tabulate
from robagg.report.plots import draw, find_worst, unroll


def record(
    method: str = "tq", attack: str = "ipm", f: int = 2, accuracy: float = 90.0, seed: int = 0
) -> dict[str, Any]:
    fields = {"method": method, "attack": attack, "seed": seed, "n": 20, "f": f, "status": "ok", "diverged": None}
    return fields | {"accuracy": accuracy, "curve": [[5, accuracy / 2], [10, accuracy]]}


RECORDS = [
    record(m, a, f, 90.0 - 5 * f - 3 * s - (20 if a == "lf" else 0), s)
    for m in ("tq", "cm")
    for a in ("ipm", "lf")
    for f in (2, 4)
    for s in range(3)
]


@pytest.mark.parametrize("ending", ["pdf", "png", "svg"])
@pytest.mark.parametrize("axes", [{}, {"x": "f"}, {"x": "f", "worst": True}, {"x": "attack", "heatmap": True}])
def test_every_figure_is_written_and_equal_numbers_give_equal_files(
    ending: str, axes: dict[str, Any], tmp_path: Path
) -> None:
    paths = [plot(RECORDS, tmp_path / name / f"figure.{ending}", **axes) for name in "ab"]
    first, second = (path.read_bytes() for path in paths)
    assert len(first) > 2000 and first == second


def test_lines_are_means_and_bands_are_intervals() -> None:
    (table,) = tabulate([each for each in RECORDS if each["attack"] == "ipm"], columns="f")
    figure = draw([table], width=3.4, heatmap=False)
    (axes,) = figure.axes
    lines = {line.get_label(): (line.get_xdata(), line.get_ydata()) for line in axes.get_lines()}
    assert [*map(list, lines["TQ"])] == [[2, 4], [77.0, 67.0]] and list(lines) == ["TQ", "CM"]
    low, high = table.cells["tq", 2].interval or (0, 0)
    assert low == pytest.approx(77 - 4.30 * 3 / 3**0.5) and high == pytest.approx(77 + 4.30 * 3 / 3**0.5)
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == pytest.approx((low - 10, high))


def test_curves_have_every_round_and_panels_are_named_by_what_differs() -> None:
    tables = tabulate(unroll(RECORDS), columns="round")
    assert [table.columns for table in tables] == [(5, 10)] * 4
    figure = draw(tables, width=3.4, heatmap=False)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["f=2, IPM (c0=27)", "f=2, LF", "f=4, IPM (c0=12)", "f=4, LF"]


def test_a_run_that_diverged_counts_as_0_from_there_on() -> None:
    wild = record(seed=1) | {"diverged": 7, "curve": [[5, 30.0]]}
    (table,) = tabulate(unroll([record(), wild]), columns="round")
    assert table.cells["tq", 5].values == (45.0, 30.0) and table.cells["tq", 10].values == (90.0, 0.0)


def test_other_measures_are_drawn_over_f_with_their_name_at_the_axis() -> None:
    records = [each | {"metrics": {"worst_client": each["accuracy"] - 10, "mine": 3.0}} for each in RECORDS]
    for name, words in (("worst_client", "worst_client (%)"), ("mine", "mine")):
        figure = draw(tabulate(records, columns="f", measures=[name]), width=3.4, heatmap=False)
        assert figure.axes[0].get_ylabel() == words
    assert list(figure.axes[0].get_lines()[0].get_ydata()) == [3.0, 3.0]


def test_the_worst_case_is_the_least_mean_over_the_attacks() -> None:
    (table,) = find_worst(tabulate(RECORDS, columns="f"))
    assert table.cells["cm", 4].mean == 47.0 and table.cells["cm", 2].mean == 57.0


def test_no_worst_case_is_drawn_where_a_rule_lacks_an_attack_or_failed(tmp_path: Path) -> None:
    lacking = [each for each in RECORDS if (each["method"], each["attack"], each["f"]) != ("cm", "lf", 4)]
    failed = {**record(attack="lf", seed=9), "status": "failed", "accuracy": None}
    with pytest.warns(UserWarning, match="worst cases left out, since results of some attack are missing or failed: 2"):
        (table,) = find_worst(tabulate([*lacking, failed], columns="f"))
    assert {place: cell.mean for place, cell in table.cells.items()} == {
        ("tq", 2): None,
        ("tq", 4): 47.0,
        ("cm", 2): 57.0,
        ("cm", 4): None,
    }
    one = [record(), record(attack="lf", f=2, seed=3) | {"method": "cm"}]
    with (
        pytest.warns(match="left out"),
        pytest.raises(ValueError, match="must have results of every attack to draw, got"),
    ):
        plot(one, tmp_path / "figure.pdf", x="f", worst=True)


def test_an_attack_without_the_measure_takes_no_worst_case_away() -> None:
    records = [each | {"metrics": {"attack_success": 20.0} if each["attack"] == "lf" else {}} for each in RECORDS]
    (table,) = find_worst(tabulate(records, columns="f", measures=["attack_success"]))
    assert {cell.mean for cell in table.cells.values()} == {20.0}


@pytest.mark.parametrize(
    ("records", "given", "sentence"),
    [
        (RECORDS, {"x": "attack"}, "x must be something that has numbers, or a heat map, got 'attack' with"),
        (RECORDS, {"heatmap": True}, "x must be something else than round for a heat map"),
        (RECORDS, {"x": "attack", "heatmap": True, "worst": True}, "neither x nor lines may be attack"),
        (RECORDS, {"y": "recall"}, "y must be accuracy over rounds, got 'recall', which a run has once"),
        (RECORDS, {"x": "f", "y": "recal"}, "unknown measure 'recal'"),
        (RECORDS, {"x": "f", "width": 0}, "width must be from 1 to 20 inches, got 0"),
        (RECORDS, {"x": "g"}, "rows and columns must be one of"),
        ([], {}, "the records must have curves to draw, got none"),
        ([], {"x": "f"}, "the records must have results to draw, got none"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(
    records: list[Any], given: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=sentence):
        plot(records, tmp_path / "figure.pdf", **given)


def test_another_ending_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ending in .pdf, .png, .svg, got 'figure.docx'"):
        plot(RECORDS, tmp_path / "figure.docx")
