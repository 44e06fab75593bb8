"""Sweeps: policies × worlds × costs × discounts, from a TOML file or from Python, to one tidy frame.

    cost = [0.7, 0.8]            # a list makes a grid
    discount = 0.99
    horizon = 1000
    replications = 500
    seed = 1
    prior = { n = 2, s = 1 }

    [[policies]]
    name = "epsilon-greedy"      # cost, discount, horizon and prior are filled in where a policy takes them
    epsilon = [0.01, 0.1]

    [[worlds]]
    name = "bernoulli"
    p = [0.75, 0.85]

All tasks of a sweep go to joblib at once, so a cluster is kept busy to the end.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lenience.core.belief import Belief
from lenience.core.errors import InputError, in_words, refusal
from lenience.core.frames import to_frame
from lenience.policies.beliefs.constant import Constant
from lenience.policies.registry import label_of, named_belief, policy_named, takes
from lenience.simulation.compare import plan, run_tasks
from lenience.simulation.named_worlds import world_named

KEYS = ("cost", "discount", "horizon", "replications", "seed", "prior", "optimum", "policies", "worlds")
GRIDS = ("cost", "discount", "horizon")
LISTS = ("shares", "rates", "at")  # parameters that are lists by nature and so make no grid; priors of segments too


class Sweep(NamedTuple):
    """A checked sweep: the fixed settings, and the lists that make the grid."""

    costs: list[Any]
    discounts: list[Any]
    horizons: list[Any]
    replications: int
    seed: int
    prior: Belief | None
    optimum: bool
    policies: list[dict[str, Any]]
    worlds: list[dict[str, Any]]


def load_sweep(path: str | Path) -> Sweep:
    """Read a sweep file; what is wrong in it is named with its line and key."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except TypeError:
        raise refusal("sweep", path, "a Sweep or the path of a file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the sweep file {str(path)!r} cannot be read: {in_words(error)}") from error
    return parse_sweep(text, str(path))


def parse_sweep(text: str, name: str = "sweep") -> Sweep:
    """Check the text of a sweep file.

    >>> parse_sweep('cost = 0.8\\nhorizon = 9\\n[[policies]]\\nname = "gredy"\\n[[worlds]]\\nname = "bernoulli"\\np=0')
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: sweep, line 4, key policies.name: policy must be one of ... did you mean 'greedy'?
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}, {_toml_place(text, str(error))}") from error
    for key in found:
        if key not in KEYS:
            raise _wrong(name, text, key, None, f"the keys must be among {', '.join(KEYS)}, not {key!r}")
    for key in ("cost", "horizon", "worlds"):
        if key not in found:
            raise InputError(f"{name}: the key {key!r} is missing")
    for key in ("policies", "worlds"):
        tables = found.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise _wrong(name, text, key, None, f"{key} must be tables, each under [[{key}]]")
        for index, table in enumerate(tables):
            if "name" not in table:
                raise _wrong(name, text, key, index, "the key 'name' is missing")
            for field, value in table.items():
                if value == [] and field not in LISTS:
                    raise _wrong(name, text, key, index, f"{field} must be a value or a list of at least one, not []")
    for key in GRIDS:
        if found.get(key) == []:
            raise _wrong(name, text, key, None, f"{key} must be a number or a list of at least one, not []")
    sweep = Sweep(
        costs=_listed(found["cost"]),
        discounts=_listed(found.get("discount", 1.0)),
        horizons=_listed(found["horizon"]),
        replications=found.get("replications", 1000),
        seed=found.get("seed", 0),
        prior=_try(name, text, "prior", None, partial(_prior, found.get("prior"))),
        optimum=found.get("optimum", True),
        policies=found.get("policies", []),
        worlds=found["worlds"],
    )
    _check(sweep, name, text)
    return sweep


def run_sweep(
    sweep: Sweep | str | Path, workers: int | None = None, progress: bool = False, backend: str | None = None
) -> Any:
    """Run a sweep (or a sweep file) and return a tidy frame: one row a setting, policy and metric.

    ``reference`` is the policy that "behind" is measured from in this setting: the optimum, or what stands in for it.

    >>> sweep = parse_sweep('cost = 0.5\\nhorizon = 50\\n[[worlds]]\\nname = "bernoulli"\\np = [0.4, 0.6]')
    >>> run_sweep(sweep, backend="pyarrow").column_names
    ['cost', 'discount', 'horizon', 'world', 'policy', 'metric', 'mean', 'lower', 'upper', 'reference']
    """
    chosen = sweep if isinstance(sweep, Sweep) else load_sweep(sweep)
    plans = [
        plan(
            _policies(chosen, cost, discount, horizon),
            world_named(**world),
            cost,
            horizon,
            chosen.prior,
            discount,
            chosen.replications,
            chosen.seed,
            optimum=chosen.optimum,
        )
        for cost, discount, horizon, world in _cells(chosen)
    ]
    blocks = list(run_tasks([task for each in plans for task in each.tasks], workers, progress))
    rows: list[dict[str, Any]] = []
    for each in plans:
        mine, blocks = blocks[: len(each.tasks)], blocks[len(each.tasks) :]
        found = each.finished(mine)
        setting = {
            "cost": found.cost,
            "discount": found.discount,
            "horizon": found.horizon,
            "world": label_of(found.world, ()),
        }
        rows += [{**setting, **row, "reference": found.baseline or ""} for row in found.summary()]
    return to_frame(rows, backend)


def _cells(sweep: Sweep) -> Iterator[tuple[Any, Any, Any, dict[str, Any]]]:
    worlds = [each for table in sweep.worlds for each in _expanded(table)]
    return itertools.product(sweep.costs, sweep.discounts, sweep.horizons, worlds)


def _expanded(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every combination of the values of parameters that are given as lists."""
    single = (*LISTS, "prior") if table.get("name") == "segments" else LISTS
    choices = [value if isinstance(value, list) and key not in single else [value] for key, value in table.items()]
    for values in itertools.product(*choices):
        yield dict(zip(table, values, strict=True))


def _policies(sweep: Sweep, cost: float, discount: float, horizon: int) -> dict[str, Any]:
    filled = {"cost": cost, "discount": discount, "horizon": horizon, "prior": sweep.prior or Belief(2, 1)}
    chosen: dict[str, Any] = {}
    for table in sweep.policies:
        for each in _expanded(table):
            name = each["name"]
            missing = {key: value for key, value in filled.items() if key not in each and takes(name, key)}
            policy = policy_named(**{**each, **missing})
            chosen[label_of(policy)] = policy
    return chosen


def _check(sweep: Sweep, name: str, text: str) -> None:
    """Make every policy and world once, so that a mistake shows before anything runs."""
    cost, discount, horizon = sweep.costs[0], sweep.discounts[0], sweep.horizons[0]
    for index, table in enumerate(sweep.worlds):
        for each in _expanded(table):
            _try(name, text, "worlds", index, partial(world_named, **each))
    for index, table in enumerate(sweep.policies):
        one = sweep._replace(policies=[table])
        _try(name, text, "policies", index, partial(_policies, one, cost, discount, horizon))
    world = world_named(**next(_expanded(sweep.worlds[0]))) if sweep.worlds else None
    for key, values in zip(GRIDS, (sweep.costs, sweep.discounts, sweep.horizons), strict=True):
        for value in values:
            given = {"cost": 0.5, "discount": 1.0, "horizon": 1, key: value}
            _try(name, text, key, None, partial(_plan_once, world, given, 1, 0))
    least = {"cost": 0.5, "discount": 1.0, "horizon": 1}
    _try(name, text, "replications", None, partial(_plan_once, world, least, sweep.replications, 0))
    _try(name, text, "seed", None, partial(_plan_once, world, least, 1, sweep.seed))


def _plan_once(world: Any, given: Mapping[str, Any], replications: Any, seed: Any) -> None:
    if world is None:
        raise InputError("worlds must be at least one")
    some = Constant(1.0)
    plan(
        some, world, given["cost"], given["horizon"], Belief(2, 1), given["discount"], replications, seed, optimum=False
    )


def _try(name: str, text: str, key: str, index: int | None, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except InputError as error:
        raise _wrong(name, text, key, index, str(error)) from error


def _wrong(name: str, text: str, key: str, index: int | None, sentence: str) -> InputError:
    """The error with its place: the key that the sentence speaks of, in the table that it comes from."""
    if index is None:
        start = re.compile(rf"\s*(\[+\s*)?{re.escape(key)}\b")
        number = next((at for at, line in enumerate(text.splitlines(), 1) if start.match(line)), 1)
        return InputError(f"{name}, line {number}, key {key}: {sentence}")
    keys = list(_keys(key, _table_lines(text, key, index)))
    number, path = next(
        ((at, path) for at, path, value in keys if _speaks_of(sentence, path, value)),
        next(((at, key) for at, path, _ in keys if path == f"{key}.name"), keys[0][:2]),
    )
    return InputError(f"{name}, line {number}, key {path}: {sentence}")


def _keys(table: str, lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """The keys of a table with their lines and what follows, those of inner tables by their path: worlds.delay.mean."""
    path = [table]
    for number, line in lines:
        head = re.match(r"\s*\[+\s*([\w.-]+)\s*\]+", line)
        if head:
            path = [head[1]]
            yield number, head[1], ""
            continue
        inner = list(path)
        # Strings and comments are blotted out, so that only keys, equals signs and braces of TOML itself are left.
        plain = re.sub(r"\"[^\"]*\"|'[^']*'", lambda text: "~" * len(text[0]), line).partition("#")[0]
        for part in re.finditer(r"([\w.-]+)\s*=\s*(\{)?|\}", plain):
            if part[0] == "}":
                inner = inner[:-1] if len(inner) > len(path) else inner
                continue
            yield number, ".".join([*inner, part[1]]), line[part.end() :]
            if part[2]:
                inner.append(part[1])


def _speaks_of(sentence: str, path: str, value: str) -> bool:
    """Whether an error speaks of a key: it begins with it, or ends in "not 'it'"; of a name, that it has it."""
    outer, _, key = path.rpartition(".")
    if not outer:
        return False
    if re.match(r"(policy|world) must be one of", sentence):
        named = re.match(r"""["'](.*?)["']""", value)
        return key == "name" and named is not None and f", not '{named[1]}'" in sentence
    return re.match(rf"{re.escape(key)}\b", sentence) is not None or sentence.endswith(f"not '{key}'")


def _table_lines(text: str, key: str, index: int) -> list[tuple[int, str]]:
    """The lines of the index-th [[key]] table, its head included, each with its number."""
    seen, inside = -1, False
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\[", line):
            mine = re.match(rf"\s*\[\[\s*{re.escape(key)}\s*\]\]", line) is not None
            seen += mine
            inner = re.match(rf"\s*\[\s*{re.escape(key)}\.", line) is not None  # [worlds.delay] belongs to the last
            inside = (mine or inner) and seen == index
        if inside:
            lines.append((number, line))
    return lines or [(1, "")]


def _toml_place(text: str, message: str) -> str:
    """Where TOML itself is broken, with the key of that line if it has one."""
    match = re.search(r"\(at line (\d+), column (\d+)\)", message)
    if match is None:
        return f"line {len(text.splitlines())}: {message}"
    number = int(match[1])
    line = text.splitlines()[number - 1] if number <= len(text.splitlines()) else ""
    key = re.match(r"\s*([A-Za-z_-]+)\s*=", line)
    return f"line {number}{f', key {key[1]}' if key else ''}: {message[: match.start()].strip()}"


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def _prior(value: Any) -> Belief | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InputError(f"prior must be a table of n and s, not {value!r}")
    return named_belief("prior", value)
