"""Tables take a parameter of an attack as rows or columns."""

from __future__ import annotations

from typing import Any

import pytest

from robagg.report import tabulate


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
