"""The documentation site builds without a warning and loads nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from documents.scripts import load_script

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NEEDED = ("mkdocs", "material", "mkdocstrings", "latex2mathml")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (pip install 'robagg[docs]')")
def test_the_site_builds_strictly_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr + done.stdout
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 10
    assert (tmp_path / "site" / "playground.html") in pages
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"(https?://[^\"]*)\"", text)
        assert loaded == [], f"{page.name} loads {loaded}"
        assert 'class="arithmatex"' not in text, f"{page.name} has a formula that was left as TeX"


def test_every_picture_on_a_page_is_there_and_made_by_a_script() -> None:
    makers = [*(DOCS / "scripts").glob("*.py"), ROOT / "benchmarks" / "document.py"]
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in makers)
    pages = [ROOT / "README.md", *DOCS.glob("*.md")]
    shown = {
        (page.parent / target).resolve()
        for page in pages
        for target in re.findall(r"!\[[^\]]*\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
        if not target.startswith("http")
    }
    assert len(shown) >= 5
    for picture in shown:
        assert picture.exists(), f"{picture.name} is not there"
        if picture.parent == DOCS / "images":
            family = picture.stem.split("-")[0]
            assert f'"{family}' in scripts, f"no script makes {picture.name}"


def test_the_page_of_names_can_be_read_before_it_is_built() -> None:
    page, api = (DOCS / "api.md").read_text(encoding="utf-8"), load_script("api")
    assert api.fill(page) == page, "run python docs/scripts/api.py"
    assert "| `TQ(f=None, iterations=10, *, floor=True)` | Minimiser of a truncated quadratic loss" in page
    for line in re.findall(r"^\| `.*", page, re.MULTILINE):
        assert len(line.rstrip(" |").partition(" | ")[2]) > 10, f"nothing is said of {line}"


def test_every_page_of_the_site_is_in_its_menu() -> None:
    menu = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {path.name for path in DOCS.glob("*.md")}
    assert pages - menu == set(), "say in mkdocs.yml where they belong"
