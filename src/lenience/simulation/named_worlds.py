"""world_named: a world by its name and parameters, as the command line and sweep files write it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from lenience.core.errors import InputError
from lenience.simulation.drifting_worlds import ChangePoints, RandomWalk, Redrawn
from lenience.simulation.label_delay import LabelDelay
from lenience.simulation.late_labels import LateLabels
from lenience.simulation.stream import World
from lenience.simulation.worlds import Bernoulli, FromPrior, Mixture

WORLDS: Mapping[str, type[Any]] = {
    "bernoulli": Bernoulli,
    "change_points": ChangePoints,
    "late_labels": LateLabels,
    "prior": FromPrior,
    "random_walk": RandomWalk,
    "redrawn": Redrawn,
    "segments": Mixture,
}


def world_names() -> list[str]:
    """The names that :func:`world_named` knows.

    >>> world_names()[:3]
    ['bernoulli', 'change-points', 'late-labels']
    """
    return sorted([*(tag.replace("_", "-") for tag in WORLDS), "past-rows"])


def world_named(name: str, **parameters: Any) -> World:
    """The world of a name with its parameters; a prior is a Belief or a mapping of n and s.

    ``segments`` take several priors too, in a list or by name; ``late-labels`` the parameters of a LabelDelay as
    ``delay`` and another world, with its ``name``, as ``world``; ``past-rows`` a ``file`` of past rows and
    the columns of their outcome and segment.

    >>> world_named("bernoulli", p=0.7)
    Bernoulli(p=0.7)
    >>> world_named("utopia")
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: world must be one of bernoulli, ..., segments, not 'utopia'
    """
    tag = name.replace("-", "_") if isinstance(name, str) else ""
    if tag != "past_rows" and tag not in WORLDS:
        raise InputError.unknown_name("world", name, world_names())
    given = dict(parameters)
    if "prior" in given:
        given["prior"] = _beliefs("prior", given["prior"])
    if isinstance(given.get("delay"), Mapping):
        given["delay"] = _made("delay", LabelDelay, given["delay"])
    if isinstance(given.get("world"), Mapping):
        inner = dict(given["world"])
        given["world"] = world_named(inner.pop("name", None), **inner)
    if tag == "past_rows":
        from lenience.simulation.past_rows import PastRows

        return _made("past-rows", PastRows.from_file, given)  # type: ignore[no-any-return]
    return _made(name, WORLDS[tag], given)  # type: ignore[no-any-return]


def _beliefs(field: str, given: Any) -> Any:
    """A belief from a mapping of n and s; of several, in a list or by name, each."""
    from lenience.policies.registry import named_belief

    if isinstance(given, list):
        return [_beliefs(f"{field}[{i}]", one) for i, one in enumerate(given)]
    if not isinstance(given, Mapping):
        return given
    if given and all(isinstance(one, Mapping) for one in given.values()):
        return {name: _beliefs(f"{field}.{name}", one) for name, one in given.items()}
    return named_belief(field, given)


def _made(name: str, make: Any, given: Mapping[str, Any]) -> Any:
    known = inspect.signature(make).parameters
    for each in given:
        if each not in known:
            raise InputError(
                each, each, f"among {', '.join(known)}", label=f"the parameters of {name}", code="unknown_name"
            )
    missing = [each for each, about in known.items() if about.default is about.empty and each not in given]
    if missing:
        raise InputError.because(f"must be given its {' and '.join(missing)}", missing, label=name, code="missing")
    return make(**given)
