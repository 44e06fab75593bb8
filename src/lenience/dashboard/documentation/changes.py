"""Chapter 8, change log: each version with author, approver, reasons, and what changed since the one before."""

from __future__ import annotations

from typing import Any

import msgspec

from lenience.core.formatting import counted
from lenience.dashboard.documentation.facts import PackFacts
from lenience.reports.document import Block, CaptionedTable, Chapter, Paragraph
from lenience.reports.views import ReportTable, TableCell
from lenience.service.domain.specification import PolicySpecification

STATE_HEADER = ("Time (UTC)", "Change", "By", "Reason")
LONG = 60  # characters of a value
NAMES = {"expire_after_days": "expiry", "prior": "prior", "origin": "data", "description": "purpose"}


def changes_chapter(facts: PackFacts) -> Chapter:
    """Return the chapter."""
    rows: list[list[str | TableCell]] = []
    before: PolicySpecification | None = None
    for record in facts.view.versions:
        specification = facts.specifications[record.version]
        proved = "not recorded" if record.proved is None else f"{record.proved:,} of {record.segments:,}"
        rows.append(
            [
                TableCell(f"Version {record.version}", note=record.state),
                TableCell(facts.name(record.created_by), note=(record.created_at or "")[:10])
                if facts.served
                else "not yet",
                TableCell(facts.name(record.activated_by), note=(record.activated_at or "")[:10]),
                "; ".join(change.reason for change in record.changes if change.reason) or "none given",
                "the first version" if before is None else "; ".join(differences(before, specification)) or "nothing",
                proved,
                f"{record.specification[:12]}…",
            ]
        )
        before = specification
    header = ("Version", "Author", "Approver", "Reasons", "Changed", "Proved", "Digest")
    states: list[list[str | TableCell]] = [
        [
            change.at[:16].replace("T", " "),
            f"version {record.version} became {change.state}{_share(change.percent)}",
            facts.name(change.by),
            change.reason or "–",
        ]
        for record in facts.view.versions
        for change in record.changes
    ]
    blocks: list[Block] = [
        Paragraph(
            f"{counted(len(facts.view.versions), 'version')}. Versions are never changed: every change is a new "
            f"version, and "
            "the log holds the digest of each."
        ),
        CaptionedTable("Versions", ReportTable(header, rows), prose=True),
    ]
    if states:
        blocks.append(
            CaptionedTable("Changes of state", ReportTable(STATE_HEADER, sorted(states, key=str)), prose=True)
        )
    return Chapter("Change log", "Who changed what, when and why?", blocks)


def _share(percent: float | None) -> str:
    return "" if percent is None else f" for {percent:g}% of applicants"


def differences(before: PolicySpecification, after: PolicySpecification) -> list[str]:
    """Say which parts of a specification changed.

    >>> from lenience import Discounted
    >>> first = PolicySpecification("loans", Discounted(0.8, 0.99), segments=["a", "b"])
    >>> second = PolicySpecification("loans", Discounted(0.75, 0.99), segments=["a", "b", "c"])
    >>> differences(first, second)
    ['cost: 0.8 → 0.75', 'segments added: c']
    """
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    parts = _objective(old["objective"], new["objective"]) + _segments(before, after)
    for field in sorted(set(old) | set(new)):
        if field in ("name", "objective", "segments") or old.get(field) == new.get(field):
            continue
        if field == "origin":
            files = [(one.get("origin") or {}).get("file", "not recorded") for one in (old, new)]
            parts.append(f"data: {files[0]} → {files[1]}" if files[0] != files[1] else f"data: {files[0]} read again")
        else:
            parts.append(_changed(NAMES.get(field, field.replace("_", " ")), old.get(field), new.get(field)))
    return parts


def _objective(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    changed = [field for field in sorted(set(old) | set(new)) if old.get(field) != new.get(field)]
    return [_changed(field.replace("_", " "), old.get(field), new.get(field)) for field in changed]


def _segments(before: PolicySpecification, after: PolicySpecification) -> list[str]:
    """Say which segments were added, removed or changed."""
    old, new = ({problem.name: problem for problem in one.problems()} for one in (before, after))
    parts = []
    added, removed = [name for name in new if name not in old], [name for name in old if name not in new]
    if added:
        parts.append(f"segments added: {_few(added)}")
    if removed:
        parts.append(f"segments removed: {_few(removed)}")
    same = [name for name in new if name in old]
    for label, of in (("share", "share"), ("prior", "belief")):
        moved = [name for name in same if getattr(old[name], of) != getattr(new[name], of)]
        if moved and not (label == "share" and (added or removed)):
            parts.append(f"{label} of {_few(moved)}")
    return parts


def _changed(name: str, old: Any, new: Any) -> str:
    texts = ["none" if value in (None, "", [], {}) else f"{value}" for value in (old, new)]
    return f"{name}: {texts[0]} → {texts[1]}" if max(map(len, texts)) <= LONG else f"{name} changed"


def _few(names: list[str], most: int = 4) -> str:
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most:,} others"
