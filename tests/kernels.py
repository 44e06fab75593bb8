"""The kernels that take longest to compile, shared out among the workers of a run.

A run that begins with nothing compiled would compile most kernels in every worker, for all need them soon. So each
worker takes what no other has taken, and all go on when everything is there.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from feature_worlds import GOAL, world
from lenience import Belief, Delayed, Discounted, FeaturePolicy, Offers, characteristics, replay
from lenience.data import load_fico
from lenience.models.curve import Curve

PATIENCE = 120.0  # seconds; a worker that has ended leaves the others to compile for themselves


def late_labels() -> None:
    Delayed(0.8, 50, 0.1, 1).solve(Belief(2, 1))


def late_offers() -> None:
    Delayed(offers=Offers([1, 2], [0.8, 0.7]), arrivals=5, discount_rate=0.5, label_delay=1).solve(
        Belief(2, 1), seconds=1e-9
    )


def curve() -> None:
    cells = load_fico().cells(bands=5)
    Curve([cell.score for cell in cells], [cell.group for cell in cells]).priors([1.0] * 20, [1.0] * 20)


def online() -> None:
    X, y = world()
    replay(X, y, GOAL, {"ours": FeaturePolicy(None, GOAL)}, seeds=2, arrivals=5)


def walks() -> None:
    characteristics(Discounted(0.8, 0.9).solve(Belief(2, 1)), rows=20)


def decisions() -> None:
    X, _ = world()
    FeaturePolicy(objective=GOAL).fit(X).decide(X[:2])


SHARES: tuple[Callable[[], None], ...] = (late_labels, late_offers, curve, online, decisions, walks)


def _folder(run: str) -> Path:
    """Where the workers of a run tell each other what they have begun and done."""
    return Path(tempfile.gettempdir()) / f"lenience-kernels-{run}"


def compile_together(run: str) -> None:
    """Compile what no other worker of the run compiles, and wait for the rest."""
    folder = _folder(run)
    folder.mkdir(exist_ok=True)
    for share in SHARES:
        try:
            (folder / f"{share.__name__}.begun").touch(exist_ok=False)
        except FileExistsError:
            continue
        share()
        (folder / f"{share.__name__}.done").touch()
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and not all((folder / f"{one.__name__}.done").exists() for one in SHARES):
        time.sleep(0.1)


def forget(run: str) -> None:
    """Remove what the workers told each other."""
    shutil.rmtree(_folder(run), ignore_errors=True)
