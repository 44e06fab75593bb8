"""The software as it was at an earlier commit, to measure before and after in one run."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMIT = "45f2bbbe"  # before the dashboard had totals and the audit several processes
ROOT = Path(__file__).parents[1]
PAST = """
import sys
from lenience.cli.demo_portfolio import Portfolio, simulate_past
simulate_past(sys.argv[1], Portfolio(), times=float(sys.argv[2]))
"""


def earlier_source(folder: Path) -> Path:
    """Extract the package of the earlier commit, and return the folder to put into PYTHONPATH."""
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", COMMIT, "src"], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    # Applicants who arrive hundreds of times as fast met an exposure limit that this commit could not put into words.
    reasons = folder / "src" / "lenience" / "service" / "domain" / "offer_reasons.py"
    reasons.write_text(reasons.read_text().replace("{verdict.limit:,}", "{verdict.limit or 0:,}"))
    return folder / "src"


@contextmanager
def importing(source: Path) -> Iterator[None]:
    """Let processes that are started in this block import the package from a folder."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(source)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def write_past(database: Path, times: float, source: Path) -> None:
    """Play the demonstration's past, so many times over, with the earlier package."""
    with importing(source):
        subprocess.run([sys.executable, "-c", PAST, str(database), str(times)], check=True)
