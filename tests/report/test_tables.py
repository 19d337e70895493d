"""Tables take a parameter of an attack as rows or columns."""

from __future__ import annotations

from typing import Any

import pytest

from robagg.report import render, tabulate


def record(attack: str, accuracy: float, seed: int = 0) -> dict[str, Any]:
    fields = {"method": "tq", "attack": attack, "seed": seed, "n": 20, "f": 6, "status": "ok", "diverged": None}
    return fields | {"accuracy": accuracy}


def test_a_parameter_of_an_attack_is_an_axis_and_other_attacks_are_left_out() -> None:
    records = [record("minmax(scale=0.5)", 50.0), record("minmax(scale=0.5)", 60.0, 1), record("lf", 90.0)]
    (table,) = tabulate([*records, record("minmax(scale=10.0)", 95.0)], columns="minmax.scale")
    assert table.columns == (0.5, 10.0)
    assert table.cells["tq", 0.5].accuracies == (50.0, 60.0)
    assert dict(table.group)["attack"] == "minmax"


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
