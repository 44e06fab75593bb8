"""A replay as words, a table and one HTML file that needs nothing else."""

from __future__ import annotations

import html
import io
import math
from pathlib import Path

from lenience.__about__ import __version__
from lenience.errors import InputError
from lenience.policy.words import even_percent
from lenience.study.replay import Replayed

FEW = 10  # runs, below which an interval is too wide to tell
STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5b6570; --page: #fbfbf9; --card: #fff; --line: #d9dde2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaee; --soft: #9aa5b1; --page: #14181c; --card: #1c2228;
  --line: #37414b; } }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 64rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; } .soft { color: var(--soft); font-size: 0.92rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: 0.35rem 0.6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } tr.first td { font-weight: 600; }
figure { margin: 1rem 0; background: #fff; border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.5rem; }
svg { width: 100%; height: auto; }
"""

CAPTION = (
    "Reward is discounted, total is not; a success earns 1 − c and a failure loses c. Lead: how much more the first "
    "policy earned than this one, on the same arrivals and luck. Regret: how much less this one earned (discounted) "
    "than the default model would have if it had been told the outcomes of all rows beforehand; below 0 it is "
    "more."
)


def rows_of(found: Replayed) -> tuple[list[str], list[list[str]]]:
    """The headings and the rows of the table; the first policy is the one the others are compared with."""
    groups = list(found.outcomes[0].by_group)
    headings = ["policy", "reward", "± 95 %", "lead", "± 95 %", "total", "regret", "accepted", *groups]
    rows = []
    for outcome in found.outcomes:
        first = outcome is found.outcomes[0]
        difference, half = outcome.behind(found.outcomes[0])
        rows.append(
            [
                outcome.policy,
                f"{outcome.mean:.2f}",
                _finite(outcome.half_width),
                "" if first else f"{difference:+.2f}",
                "" if first else _finite(half),
                f"{outcome.total.mean():.1f}",
                f"{outcome.regret.mean():.2f}",
                even_percent(outcome.accepted, 0),
                *(even_percent(outcome.by_group[group], 0) for group in groups),
            ]
        )
    return headings, rows


def verdict(found: Replayed) -> str:
    """Who did best, in words."""
    first = found.outcomes[0]
    better = []
    for outcome in found.outcomes[1:]:
        difference, half = outcome.behind(first)
        if difference < -half:
            better.append(f"{outcome.policy} ({-difference:.2f} ± {half:.2f} ahead)")
    if better:
        return f"{first.policy} is behind {', '.join(better)}, beyond the interval; it is behind no other."
    few = "" if found.seeds >= FEW else f" So few runs ({found.seeds}) cannot tell: give more --seeds."
    return f"{first.policy} is behind no other policy beyond the interval.{few}"


def write_report(found: Replayed, path: str | Path, title: str, about: str = "") -> Path:
    """Write the report, with what is to be said ``about`` the data; returns its path."""
    from lenience.plot.features import replay_figure

    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"report must be in a folder that exists, not {str(target.parent)!r}")
    text = io.StringIO()
    replay_figure(found, title).savefig(text, format="svg")
    picture = text.getvalue()
    picture = picture[picture.index("<svg") :]
    headings, rows = rows_of(found)
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = "".join(
        f'<tr class="{"first" if i == 0 else ""}">' + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for i, row in enumerate(rows)
    )
    target.write_text(
        f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><style>{STYLE}</style></head><body><main>
<h1>{html.escape(title)}</h1>
<p>{html.escape(describe(found))} {html.escape(about)}</p><p><b>{html.escape(verdict(found))}</b></p>
<figure>{picture}</figure>
<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>
<p class="soft">{html.escape(CAPTION)} Written by lenience {__version__}.</p>
</main></body></html>
""",
        encoding="utf-8",
    )
    return target


def describe(found: Replayed) -> str:
    """What was replayed."""
    known = f"{found.warm} labels known at the start" if found.warm else "no label known at the start"
    return (
        f"{found.seeds} runs of {found.arrivals:,} arrivals drawn from the data (success rate "
        f"{even_percent(found.success_rate)}), {known}, {found.objective}. An outcome is seen only if its individual "
        "is accepted."
    )


def _finite(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "–"
