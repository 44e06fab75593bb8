"""Portfolios of past decisions, and a word for importing them."""

from __future__ import annotations

from hashlib import sha256
from random import Random
from typing import Any

import msgspec

from engines import Engine, Json
from lenience.service.commands.imports import ImportDecisions
from lenience.service.domain.imported_rows import ImportRequest
from lenience.service.domain.receipts import make_sender


def rows_of(number: int, seed: int = 0, segments: tuple[str, ...] = ("young", "old")) -> list[Json]:
    """Past decisions: every fifth is rejected, every seventh is open, the others succeed with 70%."""
    chance = Random(seed)
    rows: list[Json] = []
    for i in range(number):
        day = f"{2018 + i * 5 // number}-{i * 12 // number % 12 + 1:02d}-{i % 28 + 1:02d}"
        row: Json = {"decided_at": day, "segment": chance.choice(segments), "reference": f"loan {seed} {i}"}
        if i % 5 == 4:
            row["decision"] = "reject"
        elif i % 7 != 6:
            row |= {"outcome": "success" if chance.random() < 0.7 else "failure", "outcome_at": "2024-06-30"}
        elif i % 2:
            row["outcome"] = "late"
        rows.append(row)
    return rows


def source_of(rows: list[Json], **changes: Any) -> Json:
    digest = sha256(repr(rows).encode()).hexdigest()
    return {"file": "loans.csv", "digest": digest, "rows": len(rows), "columns": {"decided_at": "issued"}, **changes}


def import_rows(
    engine: Engine,
    rows: list[Json],
    policy: str = "cards",
    size: int = 1000,
    source: Json | None = None,
    key: str | None = None,
    **more: Any,
) -> list[Json]:
    """Send all rows in batches, and return the answers."""
    answers = []
    for start in range(0, len(rows), size):
        posted = {"source": source or source_of(rows), "first": start, "rows": rows[start : start + size], **more}
        asked = msgspec.convert(posted, ImportRequest)
        sender = make_sender("tester", None if key is None else f"{key} {start}", "import", asked)
        answers.append(engine.call(ImportDecisions(sender, policy, asked)))
    return answers
