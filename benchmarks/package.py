"""Install the wheel into an empty environment with each extra alone, and use what that extra is for: `make package`.

Too slow for the tests: each extra is an environment of its own, with everything installed anew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOANS = "region,approved,repaid\n" + "north,1,1\n" * 6 + "north,1,0\nsouth,1,1\nsouth,0,\n"
ROWS = "x,repaid\n" + "".join(f"{i % 7},{int(i % 3 > 0)}\n" for i in range(90))
FIT = ["lenience", "fit", "loans.csv", "--segment", "region", "--accepted", "approved", "--outcome", "repaid"]
REPLAY = ["lenience", "replay", "rows.csv", "--outcome", "repaid"]
SOLVE = ["lenience", "solve", "--cost", "0.8", "--discount", "0.9", "--json"]


def python(program: str) -> list[str]:
    """A program for the environment's Python."""
    return ["python", "-c", program]


# What each extra is for, in a few words that run.
USES: dict[str, list[list[str]]] = {
    "": [SOLVE, ["python", "-m", "lenience", "--version"], ["lenience", "completion", "bash"]],
    "plot": [["lenience", "plot", "thresholds", "--output", "thresholds.svg"]],
    "history": [FIT],
    "postgres": [FIT, python("import ibis, psycopg; ibis.postgres")],
    "simulate": [["lenience", "simulate", "--cost", "0.8", "--discount", "0.9", "--horizon", "50"]],
    "serve": [["lenience", "keys", "create", "--label", "x", "--role", "read"], ["lenience", "audit"]],
    "client": [python("import lenience as ln; print(ln.Client('http://127.0.0.1:9', retries=0).ready())")],
    "learn": [[*REPLAY, "--cost", "0.6", "--discount", "0.9", "--seeds", "2"]],
    "document": [
        [*FIT, "--cost", "0.6", "--discount", "0.9", "--output", "policy.json"],
        ["lenience", "document", "policy.json", "--output", "pack.html", "--docx", "pack.docx"],
    ],
    "all": [SOLVE, FIT, ["lenience", "plot", "values", "--output", "values.png"]],
}  # fmt: skip


def main() -> int:
    """Build, install, use; one line an extra; 1 if anything failed."""
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    missing = extras - {"bench", "dev"} - set(USES)
    assert not missing, f"no use is known for the extras {missing}"
    wanted = sys.argv[1:] or list(USES)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        for extra in wanted:
            started = time.perf_counter()
            trouble = check(wheel, "" if extra == "none" else extra, Path(folder) / "environment")
            failed += bool(trouble)
            print(f"{extra or 'no extra':10} {time.perf_counter() - started:5.0f} s  {trouble or 'ok'}", flush=True)
    return 1 if failed else 0


def build(folder: Path) -> Path:
    """The wheel, built from the source archive as one would publish it."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next((folder / "dist").glob("*.whl"))


def check(wheel: Path, extra: str, place: Path) -> str:
    """What went wrong with one extra in an empty environment, or nothing."""
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, with_pip=True)
    binaries = place / ("Scripts" if os.name == "nt" else "bin")
    foreign = ("PYTHONPATH", "LENIENCE_DATABASE_URL")
    surroundings = {name: value for name, value in os.environ.items() if name not in foreign}
    surroundings["PATH"] = f"{binaries}{os.pathsep}{surroundings['PATH']}"
    install = ["python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    commands = [[*install, f"{wheel}[{extra}]" if extra else str(wheel)], *USES[extra]]
    work = place / "work"
    work.mkdir()
    (work / "loans.csv").write_text(LOANS)
    (work / "rows.csv").write_text(ROWS)
    for command in commands:
        command = [str(binaries / command[0]), *command[1:]]
        done = subprocess.run(command, cwd=work, env=surroundings, capture_output=True, text=True)
        if done.returncode != 0:
            return f"{' '.join(command[:4])} failed: {(done.stderr or done.stdout).strip()[-600:]}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
