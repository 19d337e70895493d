"""The playground is one page that loads nothing, and its mathematics is that of the package."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from report.plane import NAMES, draw_scenes, find_differences
from robagg.cli.playground import playground
from robagg.report.bundle import allow, bundle, read
from robagg.report.playground import MODULES, write_playground

PAGE = write_playground()
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed, so the page's scripts cannot run here")


def run_node(source: str, given: object = None) -> str:
    """What a module prints; it finds `given` as the constant `given`."""
    assert NODE is not None
    text = f"const given = {json.dumps(given)};\n{source}"
    done = subprocess.run([NODE, "--input-type=module", "-"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def take(*modules: str) -> str:
    """Modules, and all that they export."""
    names = [
        re.findall(r"^export (?:function|const) (\w+)", read("playground", f"{m}.js"), re.MULTILINE) for m in modules
    ]
    pairs = zip(modules, names, strict=True)
    return bundle("playground", modules) + "".join(f"const {{ {', '.join(n)} }} = {m}Module;\n" for m, n in pairs)


def test_the_page_loads_nothing_and_allows_nothing_else() -> None:
    for name, value in re.findall(r"\b(src|href|action)=\"([^\"]*)\"", PAGE):
        assert value.startswith(("data:", "#")), f"{name}={value}"
    assert set(re.findall(r"https?://[^\"' )]+", PAGE)) == {"http://www.w3.org/2000/svg"}, "the name of SVG, no address"
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', PAGE)
    assert policy is not None and policy[1].startswith("default-src 'none';")
    (script,) = re.findall(r"<script[^>]*>(.*?)</script>", PAGE, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", PAGE, re.DOTALL)
    assert allow(script) in policy[1] and allow(style) in policy[1]
    assert "unsafe" not in policy[1] and not re.search(r"%[A-Z]+%", PAGE)


def test_every_script_is_in_the_page_once() -> None:
    files = {path.stem for path in (Path(__file__).parents[2] / "src/robagg/report/playground").glob("*.js")}
    assert files == set(MODULES)
    assert not re.search(r"^(import|export) ", bundle("playground", MODULES), re.MULTILINE)
    for name in MODULES:
        for needed in re.findall(r'^import .* from "\./(\w+)\.js";$', read("playground", f"{name}.js"), re.MULTILINE):
            assert MODULES.index(needed) < MODULES.index(name), f"{name} needs {needed}, which comes after it"


def test_controls_have_names() -> None:
    labelled = set(re.findall(r'<label[^>]* for="([^"]+)"', PAGE))
    for tag, attributes in re.findall(r"<(select|input)\b([^>]*)>", read("playground", "page.html")):
        inside = re.search(r'id="([^"]+)"', attributes)
        assert inside is not None
        assert inside[1] in labelled or inside[1] == "nnm", f"{tag} {inside[1]} has no label"
    for attributes, words in re.findall(r"<button\b([^>]*)>([^<]*)</button>", read("playground", "page.html")):
        assert words.strip() and (len(words) > 1 or "aria-label" in attributes)


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(playground)
    done = CliRunner().invoke(app, ["-o", str(tmp_path / "p.html")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "p.html").read_text(encoding="utf-8") == PAGE
    missing = CliRunner().invoke(app, ["-o", str(tmp_path / "no" / "p.html")])
    assert isinstance(missing.exception, FileNotFoundError)


@needs_node
def test_the_scripts_are_one_valid_module(tmp_path: Path) -> None:
    (tmp_path / "page.mjs").write_text(bundle("playground", MODULES), encoding="utf-8")
    done = subprocess.run([str(NODE), "--check", str(tmp_path / "page.mjs")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@needs_node
def test_the_rules_in_the_page_agree_with_the_package() -> None:
    scenes = draw_scenes(40)
    print_all = """
    const answers = given.scenes.map((scene) => Object.fromEntries(given.names.map((name) => {
      const { value, weights, taus } = aggregate(name, scene.points, scene);
      return [name, { value, weights, tau: taus.at(-1) ?? null }];
    })));
    console.log(JSON.stringify(answers));
    """
    answers = json.loads(run_node(take("rules") + print_all, {"scenes": scenes, "names": NAMES}))
    assert find_differences(scenes, answers, 1e-6) == []


@needs_node
def test_the_scenes_show_what_their_texts_say() -> None:
    measure = """
    const off = {};
    for (const name of Object.keys(SCENES)) {
      const scene = open(name, 0);
      const sent = scene.points.map((p) => [p.x, p.y]);
      const truth = mean(scene.points.filter((p) => !p.byzantine).map((p) => [p.x, p.y]));
      off[name] = Object.fromEntries(NAMES.map((rule) => [rule, distance(aggregate(rule, sent, scene).value, truth)]));
    }
    console.log(JSON.stringify(off));
    """
    off = json.loads(run_node(take("rules", "scenes") + measure))
    for start in ("good", "bad"):
        assert off[start]["tq"] < 1e-6 < 1 < off[start]["huber"] < off[start]["mean"]
    assert off["far"]["tq"] < 0.2 < off["far"]["huber"] < 5 < off["far"]["mean"]
    assert off["near"]["tq"] > max(off["near"]["huber"], off["near"]["cm"]), "TQ's weak side"
    assert min(off["groups"]["tq"], off["groups"]["krum"]) > 3
    assert off["nobody"]["mean"] < 1e-9 < min(off["nobody"][rule] for rule in ("tq", "krum", "cm", "tm"))


@needs_node
def test_rules_refuse_what_they_cannot_do() -> None:
    ask = "try { aggregate(given.name, given.points, { f: given.f }); } catch (error) { console.log(error.message); }"
    points = [[0, 0], [1, 1], [2, 2]]
    assert "n must be at least 2f+1" in run_node(take("rules") + ask, {"name": "tq", "points": points, "f": 2})
    assert "got toString" in run_node(take("rules") + ask, {"name": "toString", "points": points, "f": 1})
