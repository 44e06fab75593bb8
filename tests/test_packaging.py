"""What is shipped: the wheel has the package's files and nothing else, the source archive all that builds it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import lenience

ROOT = Path(__file__).parents[1]
BUILD = "import sys, hatchling.build as b; print(b.build_wheel(sys.argv[1])); print(b.build_sdist(sys.argv[1]))"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source archive, built as pip would, without a network."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run([sys.executable, "-c", BUILD, str(folder)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wheel, sdist = done.stdout.split()
    return folder / wheel, folder / sdist


def shipped() -> set[str]:
    """The files of the package as they stand in the source folder."""
    found = set()
    for path in (ROOT / "src").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            found.add(path.relative_to(ROOT / "src").as_posix())
    return {name for name in found if name.startswith("lenience/")}


def test_the_wheel_is_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
    own = {name for name in names if name.startswith("lenience/")}
    assert own == shipped()
    rest = {name.split("/", 1)[1] for name in names - own}
    assert rest == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    endings = {Path(name).suffix for name in own}
    assert {".py", ".pyi", ".css", ".csv", ".typed"} <= endings
    assert not endings & {".pyc", ".nbi", ".nbc", ".db", ".so", ".ipynb", ".orig", ".log"}
    assert {"lenience/py.typed", "lenience/__init__.pyi", "lenience/data/fico.csv"} <= own
    for folder in ("service/storage/migrations/versions", "dashboard/templates", "dashboard/static"):
        assert any(name.startswith(f"lenience/{folder}/") for name in own), folder


def test_the_version_comes_from_one_place(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        about = next(name for name in wheel.namelist() if name.endswith("METADATA"))
        metadata = Parser().parsestr(wheel.read(about).decode())
        entry = wheel.read(about.replace("METADATA", "entry_points.txt")).decode()
    assert metadata["Version"] == lenience.__version__
    assert f"-{lenience.__version__}-" in built[0].name
    assert "lenience = lenience.cli:main" in entry
    hits = [
        path
        for path in (ROOT / "src").rglob("*.py")
        if f'"{lenience.__version__}"' in path.read_text(encoding="utf-8") and path.name != "__about__.py"
    ]
    assert hits == []


def test_the_source_archive_can_be_built_and_tested_from(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames() if "/" in name}
    assert {f"src/{name}" for name in shipped()} <= names
    wanted = {"pyproject.toml", "Makefile", "mkdocs.yml", "CITATION.cff", "LICENSE", "README.md", "CHANGELOG.md"}
    assert wanted <= names
    wanted = {
        "tests/oracles.py",
        "docs/index.md",
        "examples/lender.py",
        "benchmarks/package.py",
        "deploy/Containerfile",
    }
    assert wanted <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith(("site/", ".venv/", "dist/"))]


def test_the_package_runs_as_a_module() -> None:
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "lenience", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings)
    assert done.stdout.strip() == f"lenience, version {lenience.__version__}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_and_completes(shell: str) -> None:
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "lenience", "completion", shell]
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings)
    assert done.returncode == 0
    assert f"_LENIENCE_COMPLETE={shell}_complete" in done.stdout
    # What the printed code asks of the program when one has typed `lenience solve --disc` and presses tab.
    words = {"COMP_WORDS": "lenience solve --disc", "COMP_CWORD": "--disc" if shell == "fish" else "2"}
    asked = {**surroundings, "_LENIENCE_COMPLETE": f"{shell}_complete", **words}
    program = "import sys; sys.argv = ['lenience']; from lenience.cli import main; main()"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=asked)
    assert "--discount-rate" in answer.stdout
    assert "--cost" not in answer.stdout
