"""Convert rows to a data frame of an installed library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lenience.core.errors import InputError

BACKENDS = ("polars", "pandas", "pyarrow")


def to_frame(rows: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]], backend: str | None = None) -> Any:
    """Return rows or columns as a native data frame of the backend: pandas, polars or pyarrow."""
    try:
        import narwhals as nw
    except ImportError as error:
        raise InputError.missing_package("data frames", "narwhals", "simulate") from error

    if isinstance(rows, Mapping):
        columns = {name: list(values) for name, values in rows.items()}
    else:
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: [row.get(name) for row in rows] for name in names}
    chosen: Any = default_backend() if backend is None else backend
    if chosen not in BACKENDS:
        raise InputError.unknown_name("backend", backend, BACKENDS)
    return nw.from_dict(columns, backend=chosen).to_native()


def default_backend() -> str:
    """Return the first of polars, pandas and pyarrow that is installed."""
    from importlib.util import find_spec

    for name in BACKENDS:
        if find_spec(name) is not None:
            return name
    raise InputError.missing_package("data frames", "polars, pandas or pyarrow", "simulate")
