"""The newcomer's path of docs/flower.md: install the wheel with the extra, change one line, `flwr run`."""

from __future__ import annotations

import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")
pytest.importorskip("ray", reason="needs flwr[simulation]")
pytest.importorskip("hatchling", reason="builds the wheel")

from flower.deployment import Deployment
from flower.newcomers import WITH_MOMENTUM, add_momentum, change, copy_newcomer

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def install(folder: Path) -> Path:
    """The programs of a fresh environment with the wheel; what that needs is found in this test's own environment."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    place = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True
    )
    (Path(place.stdout.strip()) / "outer.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    wheels = folder / "wheels"
    build = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "-w", str(wheels)]
    subprocess.run(build, check=True, capture_output=True)
    wheel = next(wheels.glob("robagg-*.whl"))
    done = subprocess.run(
        [python, "-m", "pip", "install", "--force-reinstall", "--no-deps", f"{wheel}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    # Everything that the extra names is there in versions that go together.
    checked = [python, "-m", "pip", "install", "--dry-run", f"robagg[flower] @ {wheel.as_uri()}"]
    said = subprocess.run(checked, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert "flwr" not in said.stdout.partition("Would install")[2]
    for program in [*Path(sys.executable).parent.glob("flwr*"), *Path(sys.executable).parent.glob("flower*")]:
        lines = program.read_text().splitlines()
        copy = python.parent / program.name
        copy.write_text("\n".join([f"#!{python}", *lines[1:]]) + "\n")
        copy.chmod(0o755)
    return python.parent


def test_one_line_changed_and_the_broken_client_is_no_more_than_a_line_in_the_log(tmp_path: Path) -> None:
    programs = install(tmp_path)
    app = copy_newcomer(tmp_path / "app")
    command = ["flwr", "run", str(app), "test", "--stream", "--federation-config", "num-supernodes=5"]
    with Deployment(tmp_path, 0, [], programs=programs) as deployment:
        deployment.start("before", *command)
        deployment.wait_until("before", "the model is", 600)
        change(app)
        deployment.start("after", *command)
        deployment.wait_until("after", "the model is", 600)
        add_momentum(app)
        deployment.start("momentum", *command)
        deployment.wait_until("momentum", "the model is", 600)
        assert "the model is [nan" in deployment.said("before")
        assert "the model is [3.0, 3.0, 3.0, 3.0]" in deployment.said("after")
        assert "rejected: not finite" in deployment.said("after")
        assert WITH_MOMENTUM in deployment.said("momentum")
