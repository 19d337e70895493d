"""The page of a store or of a journal: one file that holds everything, shows names as text, and stays small."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from report.journals import NAMES, fill_hostile, fill_journal
from report.records import HOSTILE, fill_small, make_record, make_runs
from robagg.cli.app import app
from robagg.lab import Run, Store
from robagg.report.bundle import bundle
from robagg.report.page import gather as gathering
from robagg.report.page import gather_rounds, write_report
from robagg.report.page.build import VIEWS, build_page, embed
from robagg.report.page.gather import gather, pack_all
from robagg.report.page.labels import LabelCounts
from robagg.server import Journal

ASSETS = Path(gathering.__file__).parent / "assets"


class Elements(HTMLParser):
    """The elements of a page: names, attributes, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self.inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.inside = tag if tag in self.texts else None
        if self.inside is not None:
            self.texts[self.inside].append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = None

    def handle_data(self, data: str) -> None:
        if self.inside is not None:
            self.texts[self.inside][-1] += data


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill_small(tmp_path_factory.mktemp("store") / "runs.jsonl")


@pytest.fixture(scope="module")
def page(store: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report(store, tmp_path_factory.mktemp("page") / "new" / "report.html").read_text(encoding="utf-8")


def read_data(page: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    return data | {"runs": unfold(data["runs"])} if isinstance(data.get("runs"), dict) else data


def unfold(columns: dict[str, dict[str, list[Any]]]) -> list[dict[str, Any]]:
    whole = {
        name: [column["values"][k] for k in column["at"]] if "at" in column else column["values"]
        for name, column in columns.items()
    }
    return [dict(zip(whole, row, strict=True)) for row in zip(*whole.values(), strict=True)]


def test_every_run_of_the_store_is_in_the_page(store: Path, page: str) -> None:
    data = read_data(page)
    assert [run["key"] for run in data["runs"]] == list(Store(store).read().records)
    assert len(data["details"]) == len(data["runs"])


def test_curves_and_weights_come_back_as_the_record_has_them() -> None:
    record = make_record(Run(rule="tq", attack="ipm", f=4), points=30)
    packed, _ = pack_all([record])
    details = json.loads(zlib.decompress(base64.b64decode(packed[0] or "")))
    assert details["curve"] == [list(point) for point in record["curve"]]
    assert details["rounds"] == record["trace"]["rounds"] and details["loss"] == record["trace"]["loss"]
    assert bytes(details["weights"]) == zlib.decompress(base64.b64decode(record["trace"]["weights"]))


def test_names_in_a_store_cannot_become_markup(page: str) -> None:
    assert HOSTILE not in page
    assert [attributes for tag, attributes in Elements(page).found if tag == "script"] == [
        {"type": "application/json", "id": "data"},
        {},
    ]
    assert HOSTILE in {run["method"] for run in read_data(page)["runs"]}


def test_a_title_cannot_become_markup(store: Path, tmp_path: Path) -> None:
    text = write_report(store, tmp_path / "page.html", title=f"</title>{HOSTILE}%DATA%", labels=False).read_text()
    assert HOSTILE not in text
    assert len([tag for tag, _ in Elements(text).found if tag == "script"]) == 2


def test_data_cannot_end_the_element_they_stand_in() -> None:
    text = embed({"a": "</script><!--<script>&\u2028"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!--<script>&\u2028"}


def test_the_page_forbids_the_network_and_every_other_script(page: str) -> None:
    elements = Elements(page)
    policy = next(a["content"] for tag, a in elements.found if a.get("http-equiv") == "Content-Security-Policy") or ""
    rules = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert rules["default-src"] == "'none'" and "unsafe" not in policy
    for kind, text in (("script-src", elements.texts["script"][-1]), ("style-src", elements.texts["style"][0])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[kind] == f"'sha256-{digest}'"


@pytest.mark.parametrize("view", VIEWS)
def test_the_page_names_no_other_file(view: str) -> None:
    text = build_page({"name": "x", "runs": []}, "x", view)
    for tag, attributes in Elements(text).found:
        assert tag not in ("link", "iframe", "img"), tag
        assert "src" not in attributes
    assert set(re.findall(r"https?://[^\s'\"]+", text)) == {"http://www.w3.org/2000/svg"}


def test_no_program_file_reads_text_as_markup_or_code() -> None:
    for file in ASSETS.glob("*.js"):
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in file.read_text(), f"{file.name} uses {word}"


def test_every_program_file_is_in_a_bundle_after_those_it_imports() -> None:
    assert {file.stem for file in ASSETS.glob("*.js")} == {name for modules in VIEWS.values() for name in modules}
    for modules in VIEWS.values():
        texts = {name: (ASSETS / f"{name}.js").read_text() for name in modules}
        for k, (name, text) in enumerate(texts.items()):
            for names, used in re.findall(r"^import \{([^}]*)\} from '\./(\w+)\.js';$", text, re.MULTILINE):
                assert used in modules[:k], f"{name} imports {used}, which comes later"
                for word in names.replace(",", " ").split():
                    exported = rf"^export (async )?(function|const) {word}\b"
                    assert re.search(exported, (ASSETS / f"{used}.js").read_text(), re.MULTILINE), (
                        f"{used} lacks {word}"
                    )
        assert not re.search(r"^(import|export) ", bundle("page/assets", modules), re.MULTILINE)


def test_a_failure_is_named_without_its_traceback(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.jsonl") as store:
        run = next(make_runs())
        record = make_record(run, points=3) | {
            "status": "failed",
            "error": "ValueError: odd",
            "traceback": "/home/me/x.py",
        }
        store.append(record)
    text = write_report(store.path, tmp_path / "page.html", labels=False).read_text()
    assert "ValueError: odd" in text and "/home/me" not in text


def test_a_failure_is_named_without_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    error = "FileNotFoundError: looked for train.gz in /home/me/mnist. `robagg data get mnist` downloads it"
    failed = {"status": "failed", "error": error, "notes": ["kept in /home/me/states"]}
    with Store(tmp_path / "runs.jsonl") as store:
        store.append(make_record(next(make_runs()), points=3) | failed)
    text = write_report(store.path, tmp_path / "page.html", labels=False).read_text()
    run = read_data(text)["runs"][0]
    assert run["error"] == error.replace("/home/me", "~") and run["notes"] == ["kept in ~/states"]
    assert "/home/me" not in text


def test_labels_are_counted_by_the_runs_own_split(page: str) -> None:
    data = read_data(page)
    run = next(run for run in data["runs"] if run["task"] == "digits")
    counts = data["labels"][run["labels"]]["counts"]
    assert len(counts) == run["n"] and sum(map(sum, counts[: run["n"] - run["f"]])) == 1438


def test_where_data_are_missing_the_page_says_so_without_naming_folders(tmp_path: Path) -> None:
    counts = LabelCounts(tmp_path)
    counts.add({"task": "mnist", "split": "rho(rho=0.5)", "n": 20, "f": 4, "seed": 0})
    counts.add({"task": "unheard", "split": "iid", "n": 20, "f": 4, "seed": 0})
    assert counts.tables[0] == {"missing": "the data of mnist are not on the machine that made this page"}
    assert "unheard" in counts.tables[1]["missing"]


def test_where_data_are_damaged_the_page_says_so_without_naming_folders(tmp_path: Path) -> None:
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(b"broken")
    counts = LabelCounts(tmp_path)
    counts.add({"task": "mnist", "split": "iid", "n": 20, "f": 4, "seed": 0})
    missing = counts.tables[0]["missing"]
    assert missing.startswith("the data of mnist could not be read") and str(tmp_path) not in missing


def test_records_that_are_not_understood_are_told_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with Store(path) as store:
        store.append(make_record(next(make_runs()), points=3))
        store.append({"robagg": 1, "key": "odd", "status": "ok", "spec": {"rule": 3}})
    known = gather(path, labels=False)
    assert len(unfold(known["runs"])) == 1 and "'odd' in line 2 is left out" in known["notes"][0]


@pytest.mark.parametrize("trace", ["x", [1]])
def test_an_odd_trace_costs_the_curves_of_that_run_only(trace: object, tmp_path: Path) -> None:
    odd, whole = (make_record(run, points=5) for run in list(make_runs())[:2])
    with Store(tmp_path / "runs.jsonl") as store:
        store.append(odd | {"trace": trace})
        store.append(whole)
    known = gather(store.path, labels=False)
    assert len(unfold(known["runs"])) == 2
    assert known["details"][0] is None and known["details"][1] is not None


def test_broken_weights_cost_the_curves_of_that_run_only(tmp_path: Path) -> None:
    records = [make_record(run, points=5) for run in list(make_runs())[:2]]
    records[0]["trace"]["weights"] = "no base64"
    packed, _ = pack_all(records)
    assert packed[0] is None and packed[1] is not None


def test_points_are_left_out_where_the_page_would_be_too_large() -> None:
    records = [make_record(run, points=150) for run in list(make_runs())[:4]]
    whole, _ = pack_all(records)
    budget = sum(len(text or "") for text in whole) // 2
    packed, points = pack_all(records, budget)
    assert points < 150 and 0 < sum(len(text or "") for text in packed) <= budget
    details = json.loads(zlib.decompress(base64.b64decode(packed[0] or "")))
    assert details["rounds"][-1] == records[0]["trace"]["rounds"][-1]


def test_where_even_few_points_are_too_many_the_last_curves_are_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Store(tmp_path / "runs.jsonl") as store:
        for run in list(make_runs())[:4]:
            store.append(make_record(run, points=150))
    few = len(gathering.pack_details(next(iter(store.records.values())), gathering.FEWEST) or "")
    others = len(json.dumps(gather(store.path, labels=False)["runs"]))
    monkeypatch.setattr(gathering, "BUDGET", others + int(2.9 * few))
    known = gather(store.path, labels=False)
    assert [bool(text) for text in known["details"]] == [True, True, False, False]
    assert "the curves of the last 2 runs are left out, for the size of this page" in known["notes"]
    assert len(unfold(known["runs"])) == 4


def test_an_empty_store_makes_a_page(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_bytes(b"")
    assert read_data(write_report(tmp_path / "runs.jsonl", tmp_path / "page.html").read_text())["runs"] == []


def test_a_store_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no store and no journal at"):
        write_report(tmp_path / "none.jsonl", tmp_path / "page.html")


@pytest.mark.parametrize("name", ["runs.jsonl", "link.html"])
def test_the_store_itself_is_not_overwritten(name: str, tmp_path: Path) -> None:
    store = fill_small(tmp_path / "runs.jsonl")
    (tmp_path / "link.html").symlink_to(store)
    before = store.read_bytes()
    with pytest.raises(ValueError, match="would overwrite the store"):
        write_report(store, tmp_path / name, labels=False)
    assert store.read_bytes() == before


def test_a_name_that_is_not_utf8_makes_a_page(store: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("the page before")
    page = write_report(store, tmp_path / "page.html", title="runs\udcff", labels=False)
    assert "<title>runs?</title>" in page.read_text(encoding="utf-8")


def test_a_journal_makes_a_page_that_holds_every_round(tmp_path: Path) -> None:
    fill_journal(tmp_path / "rounds.jsonl", 230, 3)
    data = read_data(write_report(tmp_path / "rounds.jsonl", tmp_path / "page.html").read_text())
    rounds = [one for text in data["packed"] for one in json.loads(zlib.decompress(base64.b64decode(text)))]
    assert [one["round"] for one in rounds] == list(range(1, 231)) and data["names"] == ["site-0", "site-1", "site-2"]
    assert data["notes"] == [] and data["strange"] == 0 and not data["live"]


def test_names_in_a_journal_cannot_become_markup(tmp_path: Path) -> None:
    fill_hostile(tmp_path / "rounds.jsonl")
    page = write_report(tmp_path / "rounds.jsonl", tmp_path / "page.html").read_text()
    assert HOSTILE not in page and "\u202e" not in page
    assert [tag for tag, _ in Elements(page).found].count("script") == 2
    assert read_data(page)["names"] == list(NAMES)


def test_a_journal_too_large_for_a_page_keeps_its_last_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_journal(tmp_path / "rounds.jsonl", 230, 3)
    monkeypatch.setattr(gather_rounds, "BUDGET", 10)
    data = read_data(write_report(tmp_path / "rounds.jsonl", tmp_path / "page.html").read_text())
    (text,) = data["packed"]
    assert [one["round"] for one in json.loads(zlib.decompress(base64.b64decode(text)))] == list(range(131, 231))
    assert data["notes"] == ["the first 130 rounds are left out, for the size of this page"]


def test_the_page_of_a_journal_says_where_its_chain_is_broken(tmp_path: Path) -> None:
    path = fill_journal(tmp_path / "rounds.jsonl", 4, 3)
    path.write_bytes(path.read_bytes().replace(b'"rejected":true', b'"rejected":false', 1))
    notes = read_data(write_report(path, tmp_path / "page.html").read_text())["notes"]
    assert notes == ["line 1 of rounds.jsonl is torn or was changed"]


def test_no_part_of_a_journal_is_overwritten(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "rounds.html", max_bytes=200)
    for number in (1, 2):
        journal.write(journal.seal({"round": number, "rule": "tq", "clients": []}))
    for name in ("rounds.html", "rounds.1.html"):
        with pytest.raises(ValueError, match="would overwrite the journal"):
            write_report(tmp_path / "rounds.html", tmp_path / name)


@pytest.mark.parametrize("content", ["notes of mine\n", '{"a": 1}\n', "\x00" * 100, "[project]\nname = 'x'\n"])
def test_what_is_neither_store_nor_journal_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "odd").write_text(content)
    done = CliRunner().invoke(app, ["report", str(tmp_path / "odd"), "-o", str(tmp_path / "page.html")])
    assert done.exit_code != 0 and "must be a store of runs or the journal of a server" in str(done.exception)
    assert not (tmp_path / "page.html").exists()


def test_a_store_behind_a_line_that_is_none_is_a_store_all_the_same(store: Path, tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_bytes(b"odd\n" + store.read_bytes())
    data = read_data(write_report(tmp_path / "runs.jsonl", tmp_path / "page.html", labels=False).read_text())
    assert data["runs"] and "lines that are no record were skipped: 1" in data["notes"]


def test_the_command_writes_the_file(store: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(store), "-o", str(tmp_path / "page.html"), "--no-labels"])
    assert done.exit_code == 0, done.output
    assert "page.html" in done.output and (tmp_path / "page.html").stat().st_size > 10_000
