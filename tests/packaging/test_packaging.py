"""The package as people get it: a wheel, a wheel from the sdist, an editable install, and without a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HAS_COMPILER = shutil.which(os.environ.get("CC", "cc")) is not None
CHECK = (
    "import robagg, torch; from robagg import kernels; x = torch.ones(5, 3); x[4] = 1e30; "
    "assert torch.equal(robagg.TQ(f=1)(x), torch.ones(3)); print(robagg.__file__); print(kernels.active())"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The source tree without anything built in it."""
    copy = tmp_path / "tree"
    skip = shutil.ignore_patterns("_cpu.*", "__pycache__", "*.egg-info")
    copy.mkdir()
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=skip)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff"):
        shutil.copy(ROOT / name, copy)
    return copy


def call(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def make_wheel(source: Path, into: Path, **environment: str) -> tuple[Path, str]:
    said = call(
        sys.executable, "-m", "pip", "wheel", source, "--no-deps", "--no-build-isolation", "-v", "-w", into,
        cwd=into.parent, **environment,
    )  # fmt: skip
    return next(into.glob("robagg-*.whl")), said


def use_wheel(wheel: Path, folder: Path) -> list[str]:
    """Unpack a wheel, use it, and say where it was loaded from and which kernel ran."""
    site = folder / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    said = call(sys.executable, "-W", "ignore", "-c", CHECK, cwd=folder, PYTHONPATH=str(site)).splitlines()
    assert Path(said[-2]).is_relative_to(site)
    return said


@pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler on this machine")
def test_a_wheel_carries_the_compiled_kernel(tree: Path, tmp_path: Path) -> None:
    wheel, _ = make_wheel(tree, tmp_path / "dist")
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-py3-none-{platform}.whl")
    assert use_wheel(wheel, tmp_path)[-1].startswith("c (")


@pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler on this machine")
def test_a_wheel_made_from_the_sdist_carries_it_too(tree: Path, tmp_path: Path) -> None:
    (tree / "src" / "robagg" / "kernels" / "_cpu.so").write_bytes(b"of another machine")
    call(sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", tmp_path / "sdist", tree, cwd=tmp_path)
    sdist = next((tmp_path / "sdist").glob("robagg-*.tar.gz"))
    with tarfile.open(sdist) as archive:
        assert not [name for name in archive.getnames() if "_cpu.so" in name], "a source distribution has source alone"
    wheel, _ = make_wheel(sdist, tmp_path / "dist")
    assert use_wheel(wheel, tmp_path)[-1].startswith("c (")


def test_without_a_compiler_the_wheel_is_pure_and_works(tree: Path, tmp_path: Path) -> None:
    wheel, said = make_wheel(tree, tmp_path / "dist", CC="/nonexistent")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert "/nonexistent" in said
    assert use_wheel(wheel, tmp_path)[-1] == "torch"


@pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler on this machine")
def test_an_editable_install_runs_the_compiled_kernel_from_the_tree(tree: Path, tmp_path: Path) -> None:
    home = tmp_path / "env"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    # What is installed for the tests (torch, hatchling) is lent to the new environment; robagg itself is not.
    lent = sysconfig.get_path("purelib")
    inside = call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip()
    (Path(inside) / "lent.pth").write_text(f"{lent}\n")
    call(
        python,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-build-isolation",
        "--ignore-installed",
        "-e",
        tree,
        cwd=tmp_path,
    )
    said = call(python, "-c", CHECK, cwd=tmp_path).splitlines()
    assert Path(said[-2]).is_relative_to(tree)
    assert said[-1].startswith("c (")
