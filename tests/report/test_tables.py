"""Tables take a parameter of an attack, and measures, as rows or columns."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import pytest

from robagg.lab import Run, execute
from robagg.lab.loading import flatten
from robagg.report import render, tabulate
from robagg.report.measures import detect, list_measures, take_detection
from robagg.training.trace import unpack_weights


def record(attack: str, accuracy: float, seed: int = 0) -> dict[str, Any]:
    fields = {"method": "tq", "attack": attack, "seed": seed, "n": 20, "f": 6, "status": "ok", "diverged": None}
    return fields | {"accuracy": accuracy}


def test_a_parameter_of_an_attack_is_an_axis_and_other_attacks_are_left_out() -> None:
    records = [record("minmax(scale=0.5)", 50.0), record("minmax(scale=0.5)", 60.0, 1), record("lf", 90.0)]
    (table,) = tabulate([*records, record("minmax(scale=10.0)", 95.0)], columns="minmax.scale")
    assert table.columns == (0.5, 10.0)
    assert table.cells["tq", 0.5].values == (50.0, 60.0)
    assert dict(table.group)["attack"] == "minmax"


def test_rows_and_columns_have_one_order_in_all_tables() -> None:
    first = [record("ipm", 50.0), record("lf", 60.0), {**record("ipm", 50.0), "method": "cm"}]
    other = [{**each, "f": 4} for each in reversed([*first, record("bf", 40.0)])]
    tables = tabulate([*first, *other])
    assert [table.columns for table in tables] == [("ipm", "lf", "bf"), ("ipm", "lf")]
    assert [table.rows for table in tables] == [("tq", "cm"), ("tq", "cm")]


def test_what_a_text_leaves_out_is_its_default_and_a_formula_its_number() -> None:
    (table,) = tabulate([record("minmax", 50.0), record("minmax(scale=3.0)", 60.0)], columns="minmax.scale")
    assert table.columns == (1.0, 3.0)
    (table,) = tabulate([record("alie", 50.0), record("alie(z=1.5)", 60.0)], columns="ALIE.z")
    assert table.columns == (0.366, 1.5)
    (table,) = tabulate([record("ipm", 50.0)], rows="ipm.c0", columns="method")
    assert table.rows == (7.0,)


def test_other_parameters_make_tables_of_their_own() -> None:
    records = [record("alie(jitter=0.5, z=1.0)", 50.0), record("alie(z=1.0)", 60.0)]
    tables = tabulate(records, columns="alie.z")
    assert [dict(table.group)["attack"] for table in tables] == ["alie", "alie(jitter=0.5)"]
    (both,) = tabulate(records, rows="alie.jitter", columns="alie.z")
    assert both.rows == (0.0, 0.5)
    assert (both.cells[0.5, 1.0].mean, both.cells[0.0, 1.0].mean) == (50.0, 60.0)


@pytest.mark.parametrize("axis", ["alie.q", "alien.z", "bf.scale"])
def test_a_parameter_that_is_not_there_is_a_sentence(axis: str) -> None:
    with pytest.raises(ValueError, match=f"'{axis}' is not in the records: no attack '{axis.split('.')[0]}' in them"):
        tabulate([record("alie(z=1.0)", 60.0)], columns=axis)


def test_of_an_attack_that_is_not_loaded_what_its_text_says_is_read() -> None:
    (table,) = tabulate([record("myattack(power=2.0)", 50.0), record("myattack", 60.0)], columns="myattack.power")
    assert set(table.columns) == {2.0, None}


def test_a_strength_that_a_text_leaves_out_is_written_out() -> None:
    shown = render(tabulate([record("minmax", 50.0), record("ipm", 60.0), record("lf", 70.0)]))
    assert shown.splitlines()[1].split() == ["method", "minmax(scale=1)", "ipm(c0=7)", "lf", "worst"]


def test_latex_has_the_names_of_the_field_and_no_command_of_a_name() -> None:
    records = [record("alie(z=0.5)", 50.0), record("bf_$50%&{#}~^\\", 60.0)]
    records += [{**each, "method": r"my_rule\input{x}", "accuracy": 40.0} for each in records]
    shown = render(tabulate(records), "latex")
    assert "ALIE (z=0.5)" in shown and r"bf\_\$50\%\&\{\#\}\textasciitilde{}\textasciicircum{}\textbackslash{}" in shown
    assert r"my\_rule\textbackslash{}input\{x\}" in shown and r"\input" not in shown
    assert r"TQ & \textbf{50.00} & \textbf{60.00} & \textbf{50.00} \\" in shown, "the best worst case is bold too"


def test_cells_that_failed_are_said_to_have_failed() -> None:
    failed = {**record("lf", 0.0), "accuracy": None, "status": "failed"}
    assert render(tabulate([record("ipm", 60.0), failed])).endswith("* of the cells there are; some failed")
    other = {**record("lf", 50.0), "method": "cm"}
    assert render(tabulate([record("ipm", 60.0), other])).endswith("some have no result yet")


def trace(kept: list[int], dropped: list[int], asked: list[list[bool]]) -> dict[str, Any]:
    """A trace of rounds with so many Byzantine clients kept and honest ones dropped; who was asked in each."""
    levels = bytes(level for row in asked for level in (127 if one else 255 for one in row))
    weights = base64.b64encode(zlib.compress(levels)).decode()
    return {"byzantine_kept": kept, "honest_dropped": dropped, "weights": weights}


def test_precision_and_recall_are_those_of_the_clients_that_were_left_out() -> None:
    everybody = [[True] * 5] * 2
    run = {**record("ipm", 60.0), "n": 5, "f": 2}
    assert detect({**run, "trace": trace([0, 1], [1, 0], everybody)}) == (75.0, 75.0)
    assert detect({**run, "trace": trace([2, 2], [0, 0], everybody)}) == (None, 0.0), "nobody was left out"
    half = [[True] * 5, [True, True, True, True, False]]
    assert detect({**run, "trace": trace([0, 1], [0, 2], half)}) == (50.0, pytest.approx(200 / 3)), "one was not asked"
    assert detect({**run, "trace": trace([0, 0], [0, 0], everybody), "attack": "none"}) == (None, None)
    for odd in (None, "x", {}, trace([0], [0], everybody) | {"weights": "no base64"}):
        assert detect({**run, "trace": odd}) == (None, None)


def test_a_real_run_has_the_precision_and_recall_of_its_own_verdicts() -> None:
    run = Run(rule="krum", attack="bf", f=6, settings={"rounds": 12})
    done = flatten(execute(run, device="cpu"))
    weights = unpack_weights(done["trace"], run.n)
    left = weights == 0
    found, wrong = int(left[:, -6:].sum()), int(left[:, :-6].sum())
    assert detect(done) == (100 * found / (found + wrong), 100 * found / (6 * len(weights)))


def test_measures_are_tables_of_their_own_or_columns() -> None:
    rounds = [[True] * 20]
    runs = [
        {**record("ipm", 60.0 + seed, seed), "trace": trace([6 - caught], [1], rounds)}
        for seed, caught in enumerate((3, 4, 5))
    ]
    precision, recall = tabulate(runs, measures=["precision", "recall"])
    assert dict(precision.group)["measure"] == "precision" and dict(recall.group)["measure"] == "recall"
    assert recall.cells["tq", "ipm"].values == (50.0, 400 / 6, 500 / 6)
    (table,) = tabulate(runs, columns="measure")
    assert table.columns == ("accuracy", "precision", "recall") and table.cells["tq", "accuracy"].mean == 61.0
    shown = render([table], "latex", interval=True)
    assert r"method & accuracy & precision & recall \\" in shown and r"66.67 $\pm$ 41.38" in shown
    for each in runs:
        take_detection(each)
        del each["trace"]
    assert tabulate(runs, measures=["recall"])[0].cells == recall.cells, "read before the trace was left out"


def test_what_a_run_measures_in_the_end_is_a_measure_and_the_worst_is_the_worst_of_its_kind() -> None:
    runs = [
        {**record("lf", 90.0), "metrics": {"worst_client": 40.0, "attack_success": 5.0, "loss": 0.25, "mine": 7}},
        {
            **record("ipm", 80.0),
            "metrics": {"worst_client": 60.0, "attack_success": 90.0, "class_accuracy": [70.0, None, 20.5]},
        },
        {**record("lf", 70.0), "method": "cm", "metrics": {"attack_success": 1.0}},
        {**record("ipm", 70.0), "method": "cm", "diverged": 3, "metrics": {}},
    ]
    names = [measure.name for measure in list_measures(runs)]
    measures = [dict(table.group).get("measure") for table in tabulate(runs, measures=names)]
    assert measures == ["accuracy", "worst_client", "worst_class", "attack_success", "loss", "mine"]
    success, client, own, by_class = (
        tabulate(runs, measures=[name])[0] for name in ("attack_success", "worst_client", "mine", "worst_class")
    )
    assert success.find_worst("tq").mean == 90.0 and client.find_worst("tq").mean == 40.0  # type: ignore[union-attr]
    assert success.cells["cm", "ipm"].values == (100.0,) and client.cells["cm", "ipm"].values == (0.0,), "diverged"
    assert own.cells["tq", "lf"].values == (7.0,) and by_class.cells["tq", "ipm"].values == (20.5,)
    shown = render([success], "markdown").splitlines()
    assert shown[-2:] == ["| tq | 5.00 | **90.00** | **90.00** |", "| cm | **1.00** | diverged | diverged |"]


def test_a_run_that_diverged_counts_as_lost_only_where_its_attack_has_the_measure() -> None:
    wild = {**record("bf", 10.0), "method": "mean", "diverged": 3, "metrics": {"worst_client": 1.0}}
    known = {**record("backdoor", 80.0), "method": "mean", "metrics": {"attack_success": 30.0, "worst_client": 50.0}}
    old = [wild | {"metrics": None}, record("bf", 90.0)]
    (table,) = tabulate(old, measures=["attack_success"])
    assert [(cell.word, cell.diverged) for cell in table.cells.values()] == [("-", 0)] * 2
    success, client = tabulate([wild, known, record("bf", 90.0)], measures=["attack_success", "worst_client"])
    assert success.cells["mean", "bf"].word == "-" and success.find_worst("mean").mean == 30.0  # type: ignore[union-attr]
    assert client.cells["mean", "bf"].values == (0.0,) and client.cells["mean", "bf"].word == "diverged"
    lost = known | {"seed": 1, "diverged": 5, "metrics": {}}
    assert tabulate([known, lost], measures=["attack_success"])[0].cells["mean", "backdoor"].values == (30.0, 100.0)


def test_where_nobody_was_left_out_there_is_no_precision() -> None:
    runs = [{**record("ipm", 60.0), "trace": trace([6], [0], [[True] * 20])}]
    shown = render(tabulate(runs, measures=["precision"]))
    assert shown.splitlines()[-2].split() == ["tq", "-", "-"]
    assert shown.endswith("* of the cells there are; some have no such number")


def test_a_measure_that_there_is_not_is_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"unknown measure 'recal' \(did you mean 'recall'\?\); there are: accuracy, "):
        tabulate([record("ipm", 60.0)], measures=["recal"])
