"""A replay as words, a table and one HTML file that needs nothing else."""

from __future__ import annotations

import html
import io
import math
from pathlib import Path
from typing import Any

from lenience.__about__ import __version__
from lenience.core.errors import InputError
from lenience.core.formatting import counted, even_percent, plural
from lenience.simulation.replay import Outcome, Replayed

FEW = 10  # runs, below which an interval is too wide to tell
BESIDE = 4  # groups that fit beside the other columns
STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5b6570; --page: #fbfbf9; --card: #fff; --line: #d9dde2;
  --shade: #0003; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaee; --soft: #9aa5b1; --page: #14181c; --card: #1c2228;
  --line: #37414b; --shade: #0009; } }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 64rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; } .soft { color: var(--soft); font-size: 0.92rem; }
/* A shadow at an edge beyond which there is more: paper that moves with the table covers it where there is not. */
.wide { overflow-x: auto; margin: 1rem 0; background:
  linear-gradient(to right, var(--page) 50%, transparent) left / 2.4rem 100% no-repeat local,
  linear-gradient(to left, var(--page) 50%, transparent) right / 2.4rem 100% no-repeat local,
  linear-gradient(to right, var(--shade), transparent) left / 1.1rem 100% no-repeat,
  linear-gradient(to left, var(--shade), transparent) right / 1.1rem 100% no-repeat, var(--page); }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: 0.35rem 0.6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.wide:first-of-type tbody tr:first-child td { font-weight: 600; }
figure { display: flex; flex-wrap: wrap; margin: 1rem 0; background: #fff; border: 1px solid var(--line);
  border-radius: 0.5rem; padding: 0.5rem; }
svg { flex: 1 1 20rem; min-width: 0; height: auto; } /* panels side by side where there is room, else one by one */
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
                *(_accepted(outcome, group) for group in groups),
            ]
        )
    return headings, rows


def tables_of(found: Replayed) -> list[tuple[list[str], list[list[str]]]]:
    """The table as one, or where groups are many as two: what the policies earned, and whom they accepted."""
    headings, rows = rows_of(found)
    groups = list(found.outcomes[0].by_group)
    if len(groups) <= BESIDE:
        return [(headings, rows)]
    own = len(headings) - len(groups)
    accepted = [[group, *(_accepted(outcome, group) for outcome in found.outcomes)] for group in groups]
    return [
        (headings[:own], [row[:own] for row in rows]),
        (["accepted of", *(outcome.policy for outcome in found.outcomes)], accepted),
    ]


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
    if found.seeds < FEW:
        runs = f"{counted(found.seeds, 'run')} {plural(found.seeds, 'is', 'are')}"
        return f"{runs} too few to tell whether another policy is ahead of {first.policy}: at least {FEW} are needed."
    return f"{first.policy} is behind no other policy beyond the interval."


def price(found: Replayed) -> str:
    """What it cost not to see the outcomes of the rejected, in words."""
    first = found.outcomes[0]
    difference, half = first.behind(found.told)
    within = f" ± {half:.2f}" if math.isfinite(half) else ""
    return (
        f"If the default model were told the outcome of everyone at once, the rejected included, it would earn "
        f"{found.told.mean:.2f}: {first.policy} earned {abs(difference):.2f}{within} "
        f"{'less' if difference >= 0 else 'more'}."
    )


def write_report(found: Replayed, path: str | Path, title: str, about: str = "") -> Path:
    """Write the report, with what is to be said ``about`` the data; returns its path."""
    from lenience.plot.features import replay_panels

    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"report must be in a folder that exists, not {str(target.parent)!r}")
    pictures = "".join(_svg(panel) for panel in replay_panels(found))
    tables = "".join(_table(*each) for each in tables_of(found))
    target.write_text(
        f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><style>{STYLE}</style></head><body><main>
<h1>{html.escape(title)}</h1>
<p>{html.escape(describe(found))} {html.escape(about)}</p><p><b>{html.escape(verdict(found))}</b>
{html.escape(price(found))}</p>
<figure>{pictures}</figure>
{tables}
<p class="soft">{html.escape(CAPTION)} Written by lenience {__version__}.</p>
</main></body></html>
""",
        encoding="utf-8",
    )
    return target


def _svg(figure: Any) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg")
    picture = text.getvalue()
    return picture[picture.index("<svg") :]


def _table(headings: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def describe(found: Replayed) -> str:
    """What was replayed."""
    known = f"{counted(found.warm, 'label')} known at the start" if found.warm else "no label known at the start"
    return (
        f"{counted(found.seeds, 'run')} of {counted(found.arrivals, 'arrival')} drawn from the data (success rate "
        f"{even_percent(found.success_rate)}), {known}, {found.objective.describe()}. An outcome is seen only if its "
        "individual is accepted."
    )


def _accepted(outcome: Outcome, group: str) -> str:
    """The share accepted of a group, of which in short runs nobody may have come."""
    share = outcome.by_group[group]
    return even_percent(share, 0) if math.isfinite(share) else "–"


def _finite(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "–"
