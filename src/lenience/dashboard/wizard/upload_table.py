"""Query a stored upload: a small database engine, and quoting of values and names."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from lenience.files.csv_format import identifier, literal

__all__ = ["LIMITS", "connect", "identifier", "literal", "names", "table_of"]
LIMITS = {"memory_limit": "1GB", "max_temp_directory_size": "0GB", "autoinstall_known_extensions": "false"}


def connect() -> Any:
    """Return a small engine that writes nothing to the disk and downloads nothing."""
    import duckdb

    return duckdb.connect(config={"threads": "1", **LIMITS})


@lru_cache(maxsize=64)
def names(path: Path) -> tuple[str, ...]:
    """Return the names of the columns."""
    with connect() as engine:
        return tuple(row[0] for row in engine.execute(f"DESCRIBE SELECT * FROM {table_of(path)}").fetchall())


def table_of(path: Path) -> str:
    """Return the table in a file, as a query names it."""
    return f"read_parquet({literal(str(path))})"
