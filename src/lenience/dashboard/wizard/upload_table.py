"""How an uploaded table that was kept is asked: a small engine of its own, and values and names quoted for it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from lenience.files.csv_format import identifier, literal

__all__ = ["LIMITS", "connect", "identifier", "literal", "names", "table_of"]
LIMITS = {"memory_limit": "1GB", "max_temp_directory_size": "0GB", "autoinstall_known_extensions": "false"}


def connect() -> Any:
    """An engine: small, with nothing left on the disk and nothing fetched."""
    import duckdb

    return duckdb.connect(config={"threads": "1", **LIMITS})


@lru_cache(maxsize=64)
def names(path: Path) -> tuple[str, ...]:
    """The names of the columns."""
    with connect() as engine:
        return tuple(row[0] for row in engine.execute(f"DESCRIBE SELECT * FROM {table_of(path)}").fetchall())


def table_of(path: Path) -> str:
    """The table in that file, as a query names it."""
    return f"read_parquet({literal(str(path))})"
