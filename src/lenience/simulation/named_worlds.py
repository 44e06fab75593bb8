"""world_named: create a world from its name and parameters, as the command line and sweep files write it."""

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
    """List the names that :func:`world_named` accepts.

    Returns
    -------
    list of str
        The names in alphabetical order.

    Examples
    --------
    >>> world_names()[:3]
    ['bernoulli', 'change-points', 'late-labels']
    """
    return sorted([*(tag.replace("_", "-") for tag in WORLDS), "past-rows"])


def world_named(name: str, **parameters: Any) -> World:
    """Create a world from its name and parameters.

    A prior is a Belief or a mapping of n and s. ``segments`` also takes several priors, in a list or by name.
    ``late-labels`` takes the parameters of a LabelDelay as ``delay``, and another world with its ``name`` as ``world``.
    ``past-rows`` takes a ``file`` and the names of its columns.

    Parameters
    ----------
    name : str
        One of the names of :func:`world_names`.
    **parameters : Any
        The parameters of the world.

    Returns
    -------
    World
        The world.

    Raises
    ------
    InputError
        If the name or a parameter is unknown, or a parameter is missing.

    Examples
    --------
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
        given["delay"] = _create("delay", LabelDelay, given["delay"])
    if isinstance(given.get("world"), Mapping):
        inner = dict(given["world"])
        given["world"] = world_named(inner.pop("name", None), **inner)
    if tag == "past_rows":
        from lenience.simulation.past_rows import PastRows

        return _create("past-rows", PastRows.from_file, given)  # type: ignore[no-any-return]
    return _create(name, WORLDS[tag], given)  # type: ignore[no-any-return]


def _beliefs(field: str, given: Any) -> Any:
    """Convert a mapping of n and s to a belief; convert each element of a list or of a mapping by name."""
    from lenience.policies.registry import named_belief

    if isinstance(given, list):
        return [_beliefs(f"{field}[{i}]", element) for i, element in enumerate(given)]
    if not isinstance(given, Mapping):
        return given
    if given and all(isinstance(element, Mapping) for element in given.values()):
        return {name: _beliefs(f"{field}.{name}", element) for name, element in given.items()}
    return named_belief(field, given)


def _create(name: str, make: Any, given: Mapping[str, Any]) -> Any:
    """Call a constructor after checking the names of its parameters."""
    known = inspect.signature(make).parameters
    for each in given:
        if each not in known:
            raise InputError(
                each, each, f"among {', '.join(known)}", label=f"the parameters of {name}", code="unknown_name"
            )
    missing = [each for each, parameter in known.items() if parameter.default is parameter.empty and each not in given]
    if missing:
        raise InputError.because(f"must be given its {' and '.join(missing)}", missing, label=name, code="missing")
    return make(**given)
