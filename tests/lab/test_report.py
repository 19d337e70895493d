"""Tables tell means, deviations, the true worst case, and what is missing from them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from lab.sharing import EXAMPLES
from robagg.cli.screen import adapt
from robagg.cli.show import show
from robagg.lab import RESULTS_VERSION, execute, grid, load
from robagg.lab.__main__ import sweep
from robagg.report.formats import FORMATS, render
from robagg.report.tables import list_troubles, tabulate

app = typer.Typer()
app.command("sweep")(adapt(sweep))
app.command()(show)


def row(method: str, attack: str, seed: int, accuracy: float | None, **more: Any) -> dict[str, Any]:
    base = {"task": "digits", "split": "rho(rho=0.5)", "rho": 0.5, "n": 20, "f": 6, "status": "ok", "diverged": None}
    return base | {"method": method, "attack": attack, "seed": seed, "accuracy": accuracy} | more


ROWS = [
    row("tq", "ipm", 0, 90.0),
    row("tq", "ipm", 1, 92.0),
    row("tq", "lf", 0, 95.0),
    row("tq", "lf", 1, 80.0),
    row("nnm >> cm", "ipm", 0, 50.0),
    row("nnm >> cm", "ipm", 1, 10.0, diverged=7),
    row("nnm >> cm", "lf", 0, None, status="failed", error="ValueError: no"),
    row("krum", "lf", 0, 99.0),
]


def test_the_worst_case_is_the_least_mean_and_what_diverged_counts_as_nothing() -> None:
    (table,) = tabulate(ROWS)
    assert table.cells["tq", "ipm"].mean == 91.0
    assert table.cells["tq", "ipm"].deviation == pytest.approx(2**0.5)
    worst = table.find_worst("tq")
    assert worst is not None
    assert worst.mean == 87.5, "the least of the means, not the least single run"
    text = render([table])
    assert text.splitlines()[2].split("  ")[-1] == "87.50"
    lines = {line.split("  ")[0]: line for line in text.splitlines()}
    assert "25.00 ± 35.36†" in lines["nnm >> cm"]
    assert lines["nnm >> cm"].endswith("25.00†*"), "of the cells there are"
    assert "failed" in lines["nnm >> cm"]
    assert lines["krum"].endswith("99.00*")
    assert "† some seeds diverged and count as 0" in text
    assert list_troubles(ROWS) == [
        "diverged in round 7: digits, nnm >> cm, ipm, rho(rho=0.5), n=20, f=6, seed=1",
        "failed: digits, nnm >> cm, lf, rho(rho=0.5), n=20, f=6, seed=0: ValueError: no",
    ]


def test_every_format_has_every_cell() -> None:
    tables = tabulate(ROWS)
    for form in FORMATS:
        text = render(tables, form)
        for name in ("tq", "krum", "ipm", "lf"):
            assert name in text.lower()
    latex = render(tables, "latex")
    assert r"\toprule" in latex
    assert r"NNM $\gg$ CM & 25.00 $\pm$ 35.36$^\dagger$ & failed & 25.00$^\dagger$* \\" in latex
    assert r"\textbf{91.00 $\pm$ 1.41}" in latex
    assert "| tq | **91.00 ± 1.41** |" in render(tables, "markdown")
    lines = list(csv.DictReader(io.StringIO(render(tables, "csv"))))
    assert len(lines) == 5
    assert lines[0]["mean"] == "91.0"
    assert lines[0]["split"] == "rho(rho=0.5)"
    with pytest.raises(ValueError, match="the format must be one of"):
        render(tables, "html")


def test_other_axes_make_other_tables() -> None:
    rows = [
        row(m, a, 0, 50.0 + f, f=f, rate=r)
        for m in ("tq", "cm")
        for a in ("ipm", "lf")
        for f in (6, 10, 2)
        for r in (1, 2)
    ]
    assert len(tabulate(rows)) == 6
    by_f = tabulate(rows, columns="f")
    assert len(by_f) == 4
    assert by_f[0].columns == (2, 6, 10)
    assert "worst" not in render(by_f)
    assert len(tabulate(rows, rows="rate", columns="rho")) == 12
    with pytest.raises(ValueError, match="got 'nothing', which no record has"):
        tabulate(rows, rows="nothing")


def test_splits_without_a_rho_are_no_more_seeds_of_each_other() -> None:
    splits = {"iid": None, "dirichlet(alpha=0.1)": None, "rho(rho=0.5)": 0.5, "rho(rho=0.9)": 0.9}
    rows = [row("tq", "ipm", 0, 50.0 + k, split=name, rho=rho) for k, (name, rho) in enumerate(splits.items())]
    tables = tabulate(rows, columns="rho")
    assert [sorted(cell.mean for cell in table.cells.values()) for table in tables] == [[52.0, 53.0], [51.0], [50.0]]
    assert "method  0.5    0.9" in render(tables) and "method  -" in render(tables)


def test_splits_of_another_kind_with_a_rho_are_no_more_seeds_of_the_papers() -> None:
    names = ("rho(rho=0.5)", "mine(rho=0.5)", "mine(rho=0.5, k=2)")
    tables = tabulate([row("tq", "ipm", 0, 50.0 + k, split=name) for k, name in enumerate(names)], columns="rho")
    assert [cell.mean for table in tables for cell in table.cells.values()] == [50.0, 51.0, 52.0]
    assert [table.title.partition(", n=")[0] for table in tables] == ["digits", "digits, mine", "digits, mine(k=2)"]


def test_a_setting_that_no_record_names_is_the_tasks() -> None:
    rows = [row("tq", "ipm", 0, 50.0, **more) for more in ({"momentum": 0.9}, {})]
    assert "method  0.9    default" in render(tabulate(rows, columns="momentum"))


def test_what_diverged_or_failed_is_never_the_best_nor_left_out_of_the_worst() -> None:
    rows = [
        row("cm", "ipm", 0, 95.0),
        *(row("cm", "ipm", seed, None, diverged=3) for seed in (1, 2)),
        *(row("tq", "ipm", seed, 80.0) for seed in range(3)),
        row("tq", "lf", 0, None, status="failed", error="no"),
        row("cm", "lf", 0, 70.0),
        row("krum", "ipm", 0, 99.0),
        row("krum", "ipm", 1, None, status="failed", error="no"),
        row("krum", "lf", 0, 20.0, diverged=3),
    ]
    text = render(tabulate(rows), "markdown")
    assert "| cm | 31.67 ± 54.85† | **70.00** | **31.67**† |" in text
    assert "| tq | **80.00 ± 0.00** | failed | 80.00* |" in text
    assert "| krum | 99.00‡ | diverged | diverged |" in text
    (failed,) = tabulate([row("rfa", "ipm", 0, 99.0), row("rfa", "ipm", 1, None, status="failed", error="no")])
    assert render([failed], "terminal").splitlines()[2].endswith("99.00‡*")
    assert "\n\\* of the cells there are; some failed" in text


@pytest.mark.parametrize("field", ["status", "accuracy", "diverged", "spec"])
def test_a_record_that_lacks_something_is_named_and_left_out(field: str, tmp_path: Path) -> None:
    store = tmp_path / "runs.jsonl"
    records = [execute(run, device="cpu") for run in grid(rules=["cm", "tq"], f=2, settings={"rounds": 1})]
    del records[0][field]
    store.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
    shown = CliRunner().invoke(app, ["show", str(store)])
    assert shown.exit_code == 0 and f"is left out: it lacks {field}" in shown.output
    assert [record["core"] for record in load(store)] == ["tq"]


def test_sweep_then_show(tmp_path: Path) -> None:
    store = tmp_path / "runs.jsonl"
    file = tmp_path / "a.toml"
    file.write_text(
        f'plugins = {str(EXAMPLES / "plugins" / "my_task.py")!r}\ntask = "blobs"\nrules = ["tq", "cm"]\n'
        "attacks = ['ipm']\nf = 3\nsettings.rounds = 3\n"
    )
    cli = CliRunner()
    arguments = ["sweep", str(file), "--store", str(store), "--device", "cpu"]
    result = cli.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "2 runs: 2 done" in result.output
    again = cli.invoke(app, arguments)
    assert "2 runs: 0 done" in again.output
    dry = cli.invoke(app, [*arguments, "--dry-run"])
    assert "2 runs, 0 to do" in dry.output

    other = json.dumps({"robagg": RESULTS_VERSION + 1, "key": "z"}, separators=(",", ":")).encode()
    other += b"\n" + json.dumps({"robagg": RESULTS_VERSION, "key": "odd"}, separators=(",", ":")).encode()
    good = store.read_bytes()
    store.write_bytes(b"\xff\xfe\x00blob\n" + other + b"\n" + good + b'{"robagg":1,"ke')
    shown = cli.invoke(app, ["show", str(store), "--format", "markdown"])
    assert shown.exit_code == 0
    assert "| tq |" in shown.output
    for words in (
        "lines that are no record were skipped: 1",
        f"of results version {RESULTS_VERSION + 1}",
        "torn after 15 bytes",
        "the record 'odd' in line 3 is left out",
    ):
        assert words in shown.output
    resumed = cli.invoke(app, arguments)
    for words in ("lines that are no record were skipped: 1", "torn after 15 bytes and is cut off", "2 runs: 0 done"):
        assert words in resumed.output
    assert len(load(store)) == 2


def test_records_are_flat_enough_for_pandas(tmp_path: Path) -> None:
    from robagg.lab import Options, grid
    from robagg.lab import sweep as do

    store = tmp_path / "runs.jsonl"
    runs = grid(rules="nnm >> tq", attacks="ipm", f=4, rho=[0.2, 1], settings={"rounds": 2, "rate": 0.1})
    do(runs, store, options=Options("cpu"))
    rows = load(store)
    for flat in rows:
        assert (flat["mixers"], flat["core"], flat["method"], flat["rate"], flat["f"]) == (
            "nnm",
            "tq",
            "nnm >> tq",
            0.1,
            4,
        )
        assert not any(
            isinstance(value, dict) for name, value in flat.items() if name not in ("trace", "plugins", "metrics")
        )
    assert [flat["rho"] for flat in rows] == [0.2, 1.0]
    pandas = pytest.importorskip("pandas", reason="pandas is nobody's dependency here")
    frame = pandas.DataFrame(rows)
    assert len(frame) == 2
    assert frame["accuracy"].dtype.kind == "f"


def test_show_reads_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"

    def client(name: int, weight: float, rejected: bool, reason: str = "", replied: bool = True) -> dict[str, Any]:
        distance = 1.0 if replied else None
        return {"client": str(name), "weight": weight, "distance": distance, "rejected": rejected, "reason": reason} | {
            "replied": replied
        }

    first = [client(2**63, 0.5, False), client(7, 0.0, True, "outside tau"), client(9, 0.5, False)]
    second = [client(2**63, 1.0, False), client(7, 0.0, True, "NaN"), client(9, 0.0, False, "timed out", replied=False)]
    rounds = [
        {"journal": 1, "rule": "tq(f=1)", "round": t, "clients": clients, "tau": 1.0}
        for t, clients in ((1, first), (2, second))
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in rounds) + '{"rule": "tq", "rou')
    for form in FORMATS:
        shown = CliRunner().invoke(app, ["show", str(path), "--format", form])
        assert shown.exit_code == 0, shown.output
        assert str(2**63) in shown.output
        assert "1 lines that are no round were skipped" in shown.output
    text = CliRunner().invoke(app, ["show", str(path)]).output
    assert "2 rounds of tq(f=1)" in text
    line = next(line for line in text.splitlines() if line.startswith("7 "))
    assert line.split() == ["7", "2", "2", "2", "0.0", "NaN"]


def test_show_says_when_there_is_nothing(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert "has no runs of this version" in CliRunner().invoke(app, ["show", str(empty)]).output
    missing = CliRunner().invoke(app, ["show", str(tmp_path / "none.jsonl")])
    assert isinstance(missing.exception, FileNotFoundError)
