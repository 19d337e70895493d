"""A sweep file of a few lines is a whole table, and a dry run tells honestly what it will take."""

from __future__ import annotations

import importlib
import re
import time
from pathlib import Path

import pytest

from lab.sharing import EXAMPLES
from robagg.data import locate_root
from robagg.lab import Options, Run, Store, estimate, execute, grid, read_sweep, sweep
from robagg.lab.__main__ import main
from robagg.lab.execution import describe_failure


def test_the_paper_s_table3_is_a_file_of_under_15_lines() -> None:
    file = EXAMPLES / "sweeps" / "table3.toml"
    assert len(file.read_text().splitlines()) < 15
    runs = read_sweep(file).runs
    assert len(runs) == 378 == 7 * 6 * 3 * 3
    assert {run.task for run in runs} == {"mnist"}
    assert {run.n for run in runs} == {20}
    assert {run.effective.rounds for run in runs} == {1500}


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    file = tmp_path / "latin.toml"
    file.write_bytes(b"rules = ['t\xffq']")
    with pytest.raises(ValueError, match=r"latin\.toml must be TOML in UTF-8"):
        read_sweep(file)


@pytest.mark.parametrize("file", sorted((EXAMPLES / "sweeps").glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_can_be_read(file: Path) -> None:
    assert read_sweep(file).runs


def test_a_dry_run_without_the_data_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(EXAMPLES / "sweeps" / "table3.toml")
    store = tmp_path / "t3.jsonl"
    assert main([file, "--dry-run", "--data", str(tmp_path), "--store", str(store), "--device", "cpu"]) == 0
    told = capsys.readouterr().out
    assert "378 runs, 378 to do" in told
    assert "no estimate of the time: could not be timed: cannot read mnist without its" in told
    assert not store.exists(), "a dry run writes nothing"


@pytest.mark.slow
def test_a_dry_run_of_table3_estimates_the_time_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (locate_root() / "mnist").is_dir():
        pytest.skip("MNIST is not here; set ROBAGG_DATA to the folder that holds it")
    # The package's `estimate` is the function, so the module is asked for by name; two cells will do for a test.
    monkeypatch.setattr(importlib.import_module("robagg.lab.estimation"), "MOST_CELLS", 2)
    file = str(EXAMPLES / "sweeps" / "table3.toml")
    arguments = ["--dry-run", "--store", str(tmp_path / "t3.jsonl"), "--workers", "2", "--device", "cpu"]
    assert main([file, *arguments]) == 0
    told = capsys.readouterr().out
    assert "378 runs, 378 to do" in told
    assert re.search(r"about [\d.]+ (h|days) here with 2 workers \(from a few rounds of 2 of 126 cells", told), told


@pytest.mark.slow
def test_an_estimate_from_timed_rounds_is_near_the_truth(tmp_path: Path, blobs: str) -> None:
    runs = grid(tasks="blobs", rules=["tq", "cm"], attacks=["ipm", "lf"], f=3, settings={"rounds": 300})
    options = Options("cpu", plugins=(blobs,))
    guess = estimate(runs, tmp_path / "runs.jsonl", options)
    assert (guess.total, guess.todo) == (4, 4)
    assert guess.seconds is not None
    begin = time.perf_counter()
    sweep(runs, tmp_path / "runs.jsonl", options=options)
    truth = time.perf_counter() - begin
    assert truth / 20 < guess.seconds < truth * 20, "not a round for a run; the machine may be busy"


def test_an_estimate_from_the_store_is_what_such_runs_took(tmp_path: Path, blobs: str) -> None:
    runs = grid(tasks="blobs", rules=["tq", "cm"], attacks=["ipm", "lf"], f=3, settings={"rounds": 3})
    options, store = Options("cpu", plugins=(blobs,), workers=2), tmp_path / "runs.jsonl"
    sweep(runs, store, executor="here", options=options)
    done = estimate(runs, store, options)
    assert (done.todo, done.seconds) == (0, 0.0)
    more = estimate([*runs, *(Run.from_json(run.describe() | {"seed": 1}) for run in runs)], store, options)
    assert more.todo == 4
    assert more.basis == ["4 of 4 cells from runs in the store"]
    known = [record["seconds"] for record in Store(store).read().records.values()]
    assert more.seconds == pytest.approx(sum(known) / 2)
    twice = estimate([*runs, *runs], tmp_path / "none.jsonl", options)
    assert (twice.total, twice.todo) == (4, 4), "a run is done once"


def test_an_estimate_leaves_out_what_the_sweep_does_not_do_again(tmp_path: Path) -> None:
    run, store = Run(rule="cm", settings={"rounds": 2}), tmp_path / "runs.jsonl"
    with Store(store) as opened:
        opened.append(describe_failure(run.describe(), run.key, "no"))
    found = [estimate([run], store, Options("cpu"), retry=retry).todo for retry in (True, False)]
    assert found == [1, 0]


def test_a_wrong_file_is_one_sentence_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "no.toml")]) == 2
    assert capsys.readouterr().err == f"error: there is no sweep file at {tmp_path / 'no.toml'}\n"


def test_grids_join_and_overlap_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(
        'rules = ["tq", "cm"]\nattack = "ipm"\nf = 4\nrho = 0.5\nsettings = { rounds = 9, batch = 8 }\n'
        '[[grid]]\nf = [4, 5]\n[[grid]]\nrules = "tq"\nsettings = { rounds = [9, 10] }\n[[grid]]\nsplit = "iid"\n'
    )
    wanted = read_sweep(file)
    assert len(wanted.runs) == 4 + 1 + 2
    assert wanted.notes == ["1 run of the file's grids overlap and are done once"]
    assert {dict(run.settings)["batch"] for run in wanted.runs} == {8}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rules = [", "must be TOML in UTF-8, got a file that is not"),
        (f"rules = {'[' * 5000}{']' * 5000}", "must be TOML in UTF-8, got a file that is not: maximum recursion"),
        ("rules = 'tq'\nstore = 3", "store must be the path of a file, got 3"),
        ("rules = 'tq'\nplugins = 3", "plugins must be paths of files, such as plugins = .*, got 3"),
        ("rules = 'tq'\ngrid = []", "headed .*grid.., with two brackets, got grid = .."),
        ("rules = 'tq'\nn = 1000000000000", "n must be at most 1,000,000, got 1,000,000,000,000"),
        ("rules = 'tq'\nsettings.schedule = [[400, 0.1]]", "schedule must be .point, factor. pairs .* 2 to 399 "),
        ("rules = 'tq'\nsettings.schedule = [[-1, 0.1]]", "schedule must be .point, factor. pairs of numbers, a point"),
        ("rules = 'tq'\nsettings.client_optimiser = 'adam'", "momentum must be 0 where clients have an optimiser"),
        ("rules = 'tq'\nsettings.root = 1.5", "root must be a whole number from 0 on, got 1.5"),
        ("attacks = ['ipm']", "a sweep must have rules"),
        ("rules = 'tq'\natacks = ['ipm']", "did you mean 'attacks'"),
        ("rules = 'tq'\nrule = 'cm'", "given once, got it in two spellings"),
        ("rules = 'tq'\nsettings.rouns = 3", "did you mean 'rounds'"),
        ("rules = 'tq'\nf = 12", "cannot be run"),
        ("rules = 'tq'\nrho = 0.9\nsplit = 'iid'", "must not be given both"),
        ("rules = 'tq'\n[[grid]]\nrho = [0.1, 0.9]\nsplit = 'iid'", "must not be given both"),
        ("rules = 'tq'\n[grid]\nf = 4", "headed .*grid.., with two brackets"),
        ("rules = 'tq'\nattacks = 3", "any attack must be written name"),
        ("rules = 'cm'\nf = 6\nsettings.share = 0.5", "share=0.5 asks 10 of 20 clients: .* n must be at least 2f"),
        ("rules = 'cm'\nsettings = 3", "settings must be given by name"),
        ("rules = 'cm'\nattacks = 'alie'\nstrengths = 3", "strengths must be given by attack"),
        ("rules = 'cm'\nsettings.full_trace = 'no'", "full_trace must be True or False"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "a.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=words):
        read_sweep(file)
    with pytest.raises(FileNotFoundError, match="no sweep file"):
        read_sweep(tmp_path / "b.toml")


def test_plugins_are_named_from_the_file_s_folder() -> None:
    wanted = read_sweep(EXAMPLES / "sweeps" / "my_rule.toml")
    assert {Path(path).name for path in wanted.plugins} == {"my_rule.py", "my_task.py"}
    assert len(wanted.runs) == 27
    assert execute(wanted.runs[0], device="cpu")["status"] == "ok"
