"""The paper's experiments: their cells, parts of them, quick looks, and runs that are done once."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import robagg
from robagg.data.agnews import find_rows
from robagg.lab import Options, Run, Store
from robagg.paper import EXPERIMENTS, Computation, Experiment, Only, Plan, find, place_store
from robagg.paper.axes import ATTACKS, CNN_RULES, RHOS, RULES
from robagg.paper.perform import foresee, perform
from robagg.paper.tq_true import TQTrue
from robagg.rules import TQ

CELLS = {
    "fig2": 36, "fig3": 27 * 8, "fig4": 27 * 8, "fig5": 36, "fig6": 6 * 7, "fig7": 6 * 7, "fig8": 3 * 7, "fig9": 3 * 7,
    "table3": 18 * 8, "table4": 12 * 8, "table5": 18 * 8, "appendix": 18 * 8, "nlp": 8 * 8,
}  # fmt: skip


def experiment_of(name: str) -> Experiment:
    found = find(name)
    assert isinstance(found, Experiment)
    return found


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_has_one_run_a_seed(name: str) -> None:
    experiment = experiment_of(name)
    places = experiment.lay()
    assert len({(p.panel, p.row, p.column) for p in places}) == CELLS[name]
    assert len(places) == CELLS[name] * experiment.seeds
    shared = 2 if name == "fig2" else 0  # its two panels cross at f=6, rho=0.5
    assert len({place.run.key for place in places}) == len(places) - shared


def test_every_name_is_found_and_every_training_experiment_is_counted_above() -> None:
    kinds = {name: type(find(name)) for name in EXPERIMENTS}
    assert {name for name, kind in kinds.items() if kind is Experiment} == set(CELLS)
    assert {name for name, kind in kinds.items() if kind is Computation} == {"fig1", "example1", "theorem2"}
    with pytest.raises(ValueError, match="experiment of the paper"):
        find("fig33")


def test_the_defaults_are_the_papers() -> None:
    for name, n, rounds, rate in (("table3", 20, 1500, 0.02), ("table5", 25, 3000, 0.1), ("nlp", 20, 900, 0.01)):
        run = experiment_of(name).lay()[0].run
        assert (run.n, run.effective.rounds, run.effective.rate, run.effective.batch) == (n, rounds, rate, 32)
    assert [*RULES] == ["RFA", "TM", "CM", "Krum", "Huber", "MCA (median)", "TQ"]
    assert [*CNN_RULES] == ["RFA", "TM", "CM", "Krum", "Huber", "MCA (median)", "MCA (fixed)", "TQ"]
    assert [*ATTACKS] == ["GA", "ALIE", "BF", "IPM", "LF", "MIMIC"]


def test_figures_vary_what_the_paper_varies() -> None:
    def runs(name: str) -> list[Run]:
        return [place.run for place in experiment_of(name).lay()]

    assert {run.f for run in runs("fig3")} == set(range(1, 10))
    assert {run.attack for run in runs("fig3")} == {"ipm"}
    assert {run.split for run in runs("fig4")} == {f"rho(rho={rho})" for rho in RHOS}
    assert RHOS == (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert {run.rule for run in runs("fig5")} >= {"tq(f=6)", "tq(f=None)", "krum(f=None)"}
    assert {run.f for run in runs("fig9")} == {12} and {run.n for run in runs("fig9")} == {25}
    assert {run.split for run in runs("fig7")} == {"rho(rho=0.2)"}
    assert {run.rule.split("(")[0] for run in runs("fig2")} == {"tq", "tqtrue"}


def test_only_keeps_the_part_that_was_asked_for() -> None:
    table = experiment_of("table3")
    part = table.lay(Plan(seeds=1, only=Only.parse("rule=TQ,attack=IPM,f=6")))
    assert [(p.panel, p.row, p.column) for p in part] == [("f=6", "TQ", "IPM")]
    either = table.lay(Plan(seeds=2, only=Only.parse("rule=tq, rule=cm,attack=ipm")))
    assert len(either) == 2 * 2 * 3
    assert {place.row for place in table.lay(Plan(only=Only.parse("rule=mca")))} == {"MCA (median)", "MCA (fixed)"}
    assert {p.panel for p in experiment_of("fig3").lay(Plan(only=Only.parse("mixer=nnm")))} == {"with NNM"}
    with pytest.raises(ValueError, match="nothing of table3 is left"):
        table.lay(Plan(only=Only.parse("f=9")))
    for wrong in ("rule", "rule=", "color=red"):
        with pytest.raises(ValueError, match="--only"):
            Only.parse(wrong)
    with pytest.raises(ValueError, match="number"):
        table.lay(Plan(only=Only.parse("f=many")))


def test_a_part_has_the_same_keys_as_the_whole() -> None:
    table = experiment_of("table3")
    whole = {place.run.key for place in table.lay()}
    assert {place.run.key for place in table.lay(Plan(seeds=1, only=Only.parse("f=6")))} < whole


def test_a_quick_look_is_small_is_on_digits_and_never_goes_to_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in CELLS:
        places = experiment_of(name).lay(Plan(quick=True))
        assert {place.run.task for place in places} == {"digits"}
        assert {place.run.seed for place in places} == {0}
        assert len(places) <= 18 * 8
        assert len({place.run.key for place in places}) == len(places)
    monkeypatch.chdir(tmp_path)
    assert place_store("fig3") == Path("runs/paper/fig3.jsonl")
    Path("results").mkdir()
    assert place_store("fig3") == Path("results/paper/fig3.jsonl")
    assert place_store("fig3", quick=True) == Path("runs/paper/fig3.quick.jsonl")
    assert place_store("fig3", given="x.jsonl") == Path("x.jsonl")


def test_tq_with_the_true_tau_follows_its_definition() -> None:
    x = torch.randn(11, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    x[7:] += 3.0
    n, f, h = 11, 4, 7
    v, mean = x.median(0).values, x[:h].mean(0)
    variance = (x[:h] - mean).square().sum(1).mean()
    for _ in range(10):
        tau2 = (n - f) / f * ((v - mean).square().sum() + variance)
        inside = (x - v).square().sum(1) <= tau2
        v = v + (x - v)[inside].sum(0) / n
    torch.testing.assert_close(TQTrue(f=4)(x), v)
    torch.testing.assert_close(TQTrue(f=3, honest=7)(x), TQTrue(f=3, honest=7)(x.clone()))
    torch.testing.assert_close(TQTrue(f=0)(x), TQ(f=0)(x))


def test_panels_by_test_batches_are_tqs_row_with_that_one_setting() -> None:
    table = experiment_of("table5")
    runs = {(place.panel, place.row, place.column, place.run.seed): place.run for place in table.lay()}
    stated = {spot: run for spot, run in runs.items() if "batches" not in spot[0]}
    assert len(runs) - len(stated) == 3 * len(ATTACKS) * 3
    for (panel, row, *rest), run in stated.items():
        by_batch = replace(run, settings={"statistics": "batch"})
        assert not run.settings and runs.get((f"{panel} (test batches)", row, *rest)) == (
            by_batch if row == "TQ" else None
        )
    assert {place.panel for place in table.lay(Plan(quick=True))} == {"f=2", "f=3", "f=4"}
    short = [place.run.effective for place in table.lay(Plan(rounds=7)) if "batches" in place.panel]
    assert {(settings.statistics, settings.rounds) for settings in short} == {("batch", 7)}


def test_runs_are_done_once_and_workers_know_what_only_one_figure_needs(tmp_path: Path) -> None:
    experiment, store = experiment_of("fig2"), tmp_path / "fig2.jsonl"
    plan = Plan(quick=True, rounds=3, only=Only.parse("f=3,rho=0.5"))
    options = Options(device="cpu", workers=2)
    assert foresee(experiment, plan, store, Options(device="cpu")).todo == 2
    first = perform(experiment, plan, store, options)
    assert (first.ran, first.failed) == (2, [])
    assert perform(experiment, plan, store, options).ran == 0
    assert {record["status"] for record in Store(store).read().records.values()} == {"ok"}


def test_cells_that_another_experiment_has_done_are_taken_over(tmp_path: Path) -> None:
    plan = Plan(quick=True, rounds=2, only=Only.parse("rule=cm,f=5"))
    options, said = Options(device="cpu"), list[str]()
    assert perform(experiment_of("table3"), plan, tmp_path / "table3.jsonl", options).ran == 6
    shared = Plan(quick=True, rounds=2, only=Only.parse("panel=alone,rule=cm,f=5"))
    summary = perform(experiment_of("fig3"), shared, tmp_path / "fig3.jsonl", options, say=said.append)
    assert (summary.ran, said) == (0, ["taken over from table3.jsonl: 1 run"])
    own, other = (Store(tmp_path / f"{name}.jsonl").read().records for name in ("fig3", "table3"))
    assert len(own) == 1 and all(other[key] == record for key, record in own.items())


def test_panels_without_their_data_are_left_out_and_said(tmp_path: Path) -> None:
    assert find_rows(tmp_path) == []
    said: list[str] = []
    with pytest.raises(FileNotFoundError, match="nothing of nlp can be run"):
        perform(experiment_of("nlp"), Plan(), tmp_path / "x.jsonl", Options(data=str(tmp_path)), say=said.append)
    assert len(said) == 4 and all("robagg data get agnews" in line for line in said)


def test_the_runs_need_torch_and_numpy_alone(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "for name in ('typer', 'rich', 'matplotlib', 'pooch', 'tqdm'): sys.modules[name] = None\n"
        "from robagg.paper.__main__ import main\n"
        f"sys.exit(main(['table3', '--quick', '--rounds', '2', '--only', 'rule=tq,attack=ipm', '--device', 'cpu', "
        f"'--store', {str(tmp_path / 's.jsonl')!r}]))"
    )
    home = str(Path(robagg.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": home, "PATH": "/usr/bin:/bin"}
    )
    assert done.returncode == 0, done.stderr
    assert "[3/3]" in done.stdout and len(Store(tmp_path / "s.jsonl").read().records) == 3
