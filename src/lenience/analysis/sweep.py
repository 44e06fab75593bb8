"""Sweeps: policies × worlds × costs × discounts, from a TOML file or from Python, to one tidy frame.

    cost = [0.7, 0.8]            # a list makes a grid
    discount = 0.99
    horizon = 1000
    replications = 500
    seed = 1
    prior = { n = 2, s = 1 }

    [[policies]]
    name = "epsilon-greedy"      # cost, discount, horizon and prior are filled in if the policy takes them
    epsilon = [0.01, 0.1]

    [[worlds]]
    name = "bernoulli"
    p = [0.75, 0.85]

All tasks of a sweep go to joblib at once, so a cluster stays busy until the end.
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
from lenience.core.errors import InputError
from lenience.core.frames import to_frame
from lenience.policies.beliefs.constant import Constant
from lenience.policies.registry import label_of, named_belief, policy_named, takes
from lenience.simulation.compare import prepare, run_tasks
from lenience.simulation.named_worlds import world_named

KEYS = ("cost", "discount", "horizon", "replications", "seed", "prior", "optimum", "policies", "worlds")
GRIDS = ("cost", "discount", "horizon")
LISTS = ("shares", "rates", "at")  # parameters that are lists, so they make no grid; so are the priors of segments


class Sweep(NamedTuple):
    """The checked settings of a sweep. Lists make the grid.

    Parameters
    ----------
    costs : list
        The break-even success rates.
    discounts : list
        The discount factors.
    horizons : list
        The numbers of arrivals.
    replications : int
        The number of replications of each setting.
    seed : int
        Seed of the random numbers.
    prior : Belief or None
        The belief at the start, or None for that of the world.
    optimum : bool
        Whether the optimum runs along.
    policies : list of dict
        The policies: a name and parameters each.
    worlds : list of dict
        The worlds: a name and parameters each.
    """

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
    """Read and check a sweep file.

    Parameters
    ----------
    path : str or Path
        The path of a TOML file.

    Returns
    -------
    Sweep
        The settings.

    Raises
    ------
    InputError
        If the file cannot be read or contains an error; the message gives the line and the key.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sweep.toml"
    ...     _ = file.write_text('cost = [0.5, 0.6]\\nhorizon = 50\\n[[worlds]]\\nname = "bernoulli"\\np = 0.6')
    ...     load_sweep(file).costs
    [0.5, 0.6]
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except TypeError:
        raise InputError("sweep", path, "a Sweep or the path of a file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError.unreadable("sweep", path, error) from error
    return parse_sweep(text, str(path))


def parse_sweep(text: str, name: str = "sweep") -> Sweep:
    """Check the text of a sweep file.

    >>> parse_sweep('cost = 0.8\\nhorizon = 9\\n[[policies]]\\nname = "gredy"\\n[[worlds]]\\nname = "bernoulli"\\np=0')
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: sweep, line 4, key policies.name: policy must be one of ... Did you mean 'greedy'?
    """
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _broken(name, text, str(error)) from error
    for key in settings:
        if key not in KEYS:
            raise _placed(name, text, key, None, InputError.unknown_name(key, key, KEYS, label="the keys"))
    for key in ("cost", "horizon", "worlds"):
        if key not in settings:
            raise InputError.because("is missing", key, label=f"the key {key!r}", code="missing", place=name)
    for key in ("policies", "worlds"):
        tables = settings.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise _placed(name, text, key, None, InputError(key, tables, f"tables, each under [[{key}]]"))
        for index, table in enumerate(tables):
            if "name" not in table:
                unnamed = InputError.because("is missing", "name", label="the key 'name'", code="missing")
                raise _placed(name, text, key, index, unnamed)
            for field, value in table.items():
                if value == [] and field not in LISTS:
                    empty = InputError(field, value, "a value or a list of at least one")
                    raise _placed(name, text, key, index, empty)
    for key in GRIDS:
        if settings.get(key) == []:
            empty = InputError(key, [], "a number or a list of at least one")
            raise _placed(name, text, key, None, empty)
    sweep = Sweep(
        costs=_listed(settings["cost"]),
        discounts=_listed(settings.get("discount", 1.0)),
        horizons=_listed(settings["horizon"]),
        replications=settings.get("replications", 1000),
        seed=settings.get("seed", 0),
        prior=_try(name, text, "prior", None, partial(_prior, settings.get("prior"))),
        optimum=settings.get("optimum", True),
        policies=settings.get("policies", []),
        worlds=settings["worlds"],
    )
    _check(sweep, name, text)
    return sweep


def run_sweep(
    sweep: Sweep | str | Path, workers: int | None = None, progress: bool = False, backend: str | None = None
) -> Any:
    """Run a sweep and return one tidy data frame.

    Parameters
    ----------
    sweep : Sweep, str or Path
        The settings, or the path of a sweep file.
    workers : int, optional
        The number of processes; by default as joblib is configured.
    progress : bool, optional
        Whether to show a progress bar.
    backend : str, optional
        "pandas", "polars" or "pyarrow"; by default one that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame or pyarrow.Table
        One row per setting, policy and metric. ``reference`` is the policy that "behind" compares with.

    Raises
    ------
    InputError
        If the settings contain an error.

    Examples
    --------
    >>> sweep = parse_sweep('cost = 0.5\\nhorizon = 50\\n[[worlds]]\\nname = "bernoulli"\\np = [0.4, 0.6]')
    >>> run_sweep(sweep, backend="pyarrow").column_names
    ['cost', 'discount', 'horizon', 'world', 'policy', 'metric', 'mean', 'lower', 'upper', 'reference']
    """
    chosen = sweep if isinstance(sweep, Sweep) else load_sweep(sweep)
    plans = [
        prepare(
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
        own_blocks, blocks = blocks[: len(each.tasks)], blocks[len(each.tasks) :]
        simulation = each.finished(own_blocks)
        setting = {
            "cost": simulation.cost,
            "discount": simulation.discount,
            "horizon": simulation.horizon,
            "world": label_of(simulation.world, ()),
        }
        rows += [{**setting, **row, "reference": simulation.baseline or ""} for row in simulation.summary()]
    return to_frame(rows, backend)


def _cells(sweep: Sweep) -> Iterator[tuple[Any, Any, Any, dict[str, Any]]]:
    """Yield every setting of the grid: cost, discount, horizon and world."""
    worlds = [each for table in sweep.worlds for each in _expanded(table)]
    return itertools.product(sweep.costs, sweep.discounts, sweep.horizons, worlds)


def _expanded(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every combination of the parameters that are given as lists."""
    single = (*LISTS, "prior") if table.get("name") == "segments" else LISTS
    choices = [value if isinstance(value, list) and key not in single else [value] for key, value in table.items()]
    for values in itertools.product(*choices):
        yield dict(zip(table, values, strict=True))


def _policies(sweep: Sweep, cost: float, discount: float, horizon: int) -> dict[str, Any]:
    """Create the policies of a setting, by name."""
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
    """Create every policy and world once, so that an error shows before anything runs."""
    cost, discount, horizon = sweep.costs[0], sweep.discounts[0], sweep.horizons[0]
    for index, table in enumerate(sweep.worlds):
        for each in _expanded(table):
            _try(name, text, "worlds", index, partial(world_named, **each))
    for index, table in enumerate(sweep.policies):
        with_one_policy = sweep._replace(policies=[table])
        _try(name, text, "policies", index, partial(_policies, with_one_policy, cost, discount, horizon))
    world = world_named(**next(_expanded(sweep.worlds[0]))) if sweep.worlds else None
    for key, values in zip(GRIDS, (sweep.costs, sweep.discounts, sweep.horizons), strict=True):
        for value in values:
            given = {"cost": 0.5, "discount": 1.0, "horizon": 1, key: value}
            _try(name, text, key, None, partial(_plan_once, world, given, 1, 0))
    least = {"cost": 0.5, "discount": 1.0, "horizon": 1}
    _try(name, text, "replications", None, partial(_plan_once, world, least, sweep.replications, 0))
    _try(name, text, "seed", None, partial(_plan_once, world, least, 1, sweep.seed))


def _plan_once(world: Any, given: Mapping[str, Any], replications: Any, seed: Any) -> None:
    """Check settings with a policy that accepts everyone."""
    if world is None:
        raise InputError.because("must contain at least one world", "worlds", code="missing")
    prepare(
        Constant(1.0),
        world,
        given["cost"],
        given["horizon"],
        Belief(2, 1),
        given["discount"],
        replications,
        seed,
        optimum=False,
    )


def _try(name: str, text: str, key: str, index: int | None, make: Callable[[], Any]) -> Any:
    """Call a function; add the place in the file to its error."""
    try:
        return make()
    except InputError as error:
        raise _placed(name, text, key, index, error) from error


def _placed(name: str, text: str, key: str, index: int | None, error: InputError) -> InputError:
    """Return the error with its place: the line of the key at fault, in the table that it comes from."""
    if index is None:
        start = re.compile(rf"\s*(\[+\s*)?{re.escape(key)}\b")
        number = next((at for at, line in enumerate(text.splitlines(), 1) if start.match(line)), 1)
        return error.at(f"{name}, line {number}, key {key}")
    keys = list(_keys(key, _table_lines(text, key, index)))
    number, path = next(
        ((at, path) for at, path, value in keys if _at_fault(error, path, value)),
        next(((at, key) for at, path, _ in keys if path == f"{key}.name"), keys[0][:2]),
    )
    return error.at(f"{name}, line {number}, key {path}")


def _keys(table: str, lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield the keys of a table with line and value; keys of inner tables have a path, e.g. worlds.delay.mean."""
    path = [table]
    for number, line in lines:
        head = re.match(r"\s*\[+\s*([\w.-]+)\s*\]+", line)
        if head:
            path = [head[1]]
            yield number, head[1], ""
            continue
        inner = list(path)
        # Replace strings and drop comments, so that only keys, equals signs and braces of TOML are left.
        plain = re.sub(r"\"[^\"]*\"|'[^']*'", lambda text: "~" * len(text[0]), line).partition("#")[0]
        for part in re.finditer(r"([\w.-]+)\s*=\s*(\{)?|\}", plain):
            if part[0] == "}":
                inner = inner[:-1] if len(inner) > len(path) else inner
                continue
            yield number, ".".join([*inner, part[1]]), line[part.end() :]
            if part[2]:
                inner.append(part[1])


def _at_fault(error: InputError, path: str, value: str) -> bool:
    """Return whether an error is about a key: one of its fields, or an unknown name of a policy or world."""
    outer, _, key = path.rpartition(".")
    if not outer or error.code == "missing":
        return False
    if error.code == "unknown_name" and error.field in ("policy", "world"):
        named = re.match(r"""["'](.*?)["']""", value)
        return key == "name" and named is not None and named[1] == error.value
    return key in {re.split(r"[.\[]", field)[0] for field in error.fields}  # of prior[0].n, the key is prior


def _table_lines(text: str, key: str, index: int) -> list[tuple[int, str]]:
    """Return the lines of the index-th [[key]] table with their numbers, including its head."""
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


def _broken(name: str, text: str, message: str) -> InputError:
    """Return the error for text that is not TOML, with its line and the key of that line if it has one."""
    lines = text.splitlines()
    match = re.search(r"\(at line (\d+), column (\d+)\)", message)
    if match is None:
        return InputError.because(message, code="invalid_file", place=f"{name}, line {len(lines)}")
    number = int(match[1])
    key = re.match(r"\s*([A-Za-z_-]+)\s*=", lines[number - 1] if number <= len(lines) else "")
    place = f"{name}, line {number}{f', key {key[1]}' if key else ''}"
    field = key[1] if key else None
    return InputError.because(message[: match.start()].strip(), field, label="", code="invalid_file", place=place)


def _listed(value: Any) -> list[Any]:
    """Return a list unchanged, and a single value as a list of one."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def _prior(value: Any) -> Belief | None:
    """Convert a table of n and s to a belief."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InputError("prior", value, "a table of n and s")
    return named_belief("prior", value)
