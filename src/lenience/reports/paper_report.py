"""write_paper_report: the paper's claims, checked, as one HTML file that needs nothing else.

Figures are inline SVG drawn in the page's own colours, so that they follow a dark scheme; the page reads on a
telephone.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from lenience.__about__ import __version__
from lenience.analysis.acceptance_by_arrival import acceptance_by_arrival
from lenience.objectives.discounted import Discounted
from lenience.paper.check import check_paper
from lenience.paper.claim import COST, DISCOUNTS, FLAT, Claim, N, counted, figure_one

Series = tuple[str, Sequence[float], Sequence[float]]
# Beside its colour each curve has its own dashes, for those who see colours otherwise and for print.
DASHES = ("none", "8 3", "2 3", "9 3 2 3", "14 4", "5 3", "1 4", "12 3 2 3 2 3")

STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5b6570; --page: #fbfbf9; --card: #fff; --line: #d9dde2;
  --c0: #0072b2; --c1: #d55e00; --c2: #008f68; --c3: #b0508a; --c4: #8a6d00; --c5: #1c2126; --c6: #6b3fa0; --c7: #a33; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaee; --soft: #9aa5b1; --page: #14181c; --card: #1c2228;
  --line: #37414b; --c0: #56b4e9; --c1: #f08a4b; --c2: #35c79b; --c3: #e08cc0; --c4: #e0c341; --c5: #f2f4f7;
  --c6: #b39ddb; --c7: #f77; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.5rem 0; } h2 { font-size: 1.25rem; margin: 2.2rem 0 0.6rem; }
p { margin: 0.5rem 0; } .soft { color: var(--soft); font-size: 0.92rem; }
.counts { display: flex; flex-wrap: wrap; gap: 0.6rem; margin: 1rem 0; padding: 0; list-style: none; }
.counts li { background: var(--card); border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.5rem 0.9rem; }
.counts b { font-size: 1.35rem; display: block; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.6rem; }
figcaption { color: var(--soft); font-size: 0.9rem; padding: 0.2rem 0.4rem; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
.axis { stroke: var(--soft); } .grid { stroke: var(--line); } .curve { fill: none; stroke-width: 2; }
article { background: var(--card); border: 1px solid var(--line); border-left: 0.35rem solid var(--mark);
  border-radius: 0.5rem; padding: 0.7rem 1rem; margin: 0.7rem 0; overflow-wrap: break-word; }
article h3 { font-size: 1.02rem; margin: 0.15rem 0; font-weight: 600; }
.badge { display: inline-block; border: 1px solid var(--mark); color: var(--mark); border-radius: 1rem;
  padding: 0 0.6rem; font-size: 0.85rem; font-weight: 600; margin-left: 0.5rem; }
.holds { --mark: var(--c2); } .made { --mark: var(--c0); }
.corrected { --mark: var(--c4); } .fails { --mark: var(--c7); }
.ours { border-top: 1px dashed var(--line); margin-top: 0.5rem; padding-top: 0.4rem; }
"""
KIND = {"holds": "holds", "made precise": "made", "holds with a correction": "corrected", "fails": "fails"}


def write_paper_report(path: str | Path, claims: Sequence[Claim] | None = None, seed: int = 2020) -> Path:
    """Check every claim of the paper (unless they are given) and write the report; returns its path.

    A path that ends in ``.md`` is given a page of Markdown, any other the HTML report with its figures. Claims that are
    given were checked with ``seed``, which both say.
    """
    found = list(check_paper(seed) if claims is None else claims)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write = paper_page if target.suffix == ".md" else paper_report
    target.write_text(write(found, seed), encoding="utf-8")
    return target


def paper_page(claims: Sequence[Claim], seed: int = 2020) -> str:
    """The claims as a page of Markdown, for a documentation site.

    >>> print(paper_page([Claim("3.1", "p̂ < 1", "holds", "Seen.", "More.")]).splitlines()[-5])
    **3.1** · *holds* · p̂ &lt; 1
    """
    counts = ", ".join(f"{verdict} {number}" for verdict, number in counted(list(claims)) if number)
    parts = [
        "# The paper, claim by claim",
        "Everything that Dennis Wei's *Optimal Policies for the Homogeneous Selective Labels Problem* (2020) states: "
        "each equation, theorem, proposition, lemma, figure, step of a proof and piece of future work, with what was "
        f"computed to check it and what is added. Of {len(claims)} claims: {counts}.",
        "This page was written by `lenience paper --output docs/paper.md`; with `--output paper.html` the same command "
        f"writes a report with figures that needs nothing else. What is drawn at random is drawn with seed {seed}; "
        "times "
        "are those of the machine it ran on.",
    ]
    section = ""
    for claim in claims:
        own = claim.section.split(",")[0].split(" and ")[0].split(" ")[0]
        heading = {"1": "Introduction", "2": "Formulation", "4": "Discussion", "Appendix": "Appendix A"}.get(
            own, f"Section {own}"
        )
        if heading != section:
            section = heading
            parts.append(f"## {section}")
        where = claim.section[0].upper() + claim.section[1:]
        parts += [f"**{where}** · *{claim.verdict}* · {_plain(claim.claim)}", f"> {_plain(claim.evidence)}"]
        if claim.addition:
            parts.append(f"> *Added.* {_plain(claim.addition)}")
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return html.escape(text, quote=False).replace("*", "\\*").replace("_", "\\_").replace("|", "\\|")


def paper_report(claims: Sequence[Claim], seed: int = 2020) -> str:
    """The report as the text of an HTML page."""
    counts = "".join(f"<li><b>{number}</b>{_text(verdict)}</li>" for verdict, number in counted(list(claims)))
    figures = "".join([*_figure_one(), _thresholds(), _sequence()])
    cards = "".join(_card(claim) for claim in claims)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Selective labels: the paper, checked</title><style>{STYLE}</style></head><body><main>
<h1>Optimal Policies for the Homogeneous Selective Labels Problem: every claim, checked</h1>
<p>Dennis Wei's paper (2020) asks whom to accept when only the accepted reveal their outcome. Below is each of its
claims, with what was computed to check it and what can be added. Accepting earns y − c, with y the outcome and c
the cost; the belief about the success probability is Beta(s, n − s), with mean p̂ = s/n.</p>
<ul class="counts">{counts}</ul>
<h2>Figures</h2><div class="figures">{figures}</div>
<h2>Claims</h2>{cards}
<p class="soft">Written by lenience {__version__}. Every number on this page was computed when it was written; what is
drawn at random was drawn with seed {seed}.</p>
</main></body></html>
"""


def _card(claim: Claim) -> str:
    ours = f'<p class="ours"><b>Added.</b> {_text(claim.addition)}</p>' if claim.addition else ""
    return (
        f'<article class="{KIND.get(claim.verdict, "holds")}"><span class="soft">Section {_text(claim.section)}</span>'
        f'<span class="badge">{_text(claim.verdict)}</span><h3>{_text(claim.claim)}</h3>'
        f"<p>{_text(claim.evidence)}</p>{ours}</article>"
    )


def _figure_one() -> Iterable[str]:
    for discount, table in figure_one().items():
        series: list[Series] = [
            (f"n = {n}" if n <= N else "known p (∞)", (np.arange(n + 1) / n).tolist(), table.values[n].tolist())
            for n in (1, 2, 5, 10, 100, N + 1)
        ]
        yield _figure(
            chart(series, "expected success rate p̂ = s/n", "value V(n, p̂)"),
            f"The paper's Figure 1: V^N(n, p̂) for N = 1000, c = {COST}, γ = {discount}, interpolated between "
            "multiples of "
            f"1/n. Proved error at n = 100: {max(table.error(100), 1e-13):.1g} or less.",
        )


def _thresholds() -> str:
    sizes = np.unique(np.rint(np.geomspace(1, 1000, 40))).astype(int)
    series: list[Series] = []
    for discount in DISCOUNTS:
        policy = Discounted(COST, discount).solve(FLAT)
        values = [policy.threshold(float(n), tolerance=1e-4).midpoint for n in sizes]
        series.append((f"γ = {discount}", [float(n) for n in sizes], values))
    series.append(("cost c", [1.0, 1000.0], [COST, COST]))
    return _figure(
        chart(series, "observations, n (log scale)", "threshold c_n", log_x=True),
        "Added: the rate above which one accepts. Leniency fades like 1/n.",
    )


def _sequence() -> str:
    policy = Discounted(COST, 0.99).solve(FLAT)
    arrivals = np.unique(np.rint(np.geomspace(1, 500, 60))).astype(int)
    series: list[Series] = []
    for p in (0.6, 0.7, 0.75, 0.85, 0.9):
        found = acceptance_by_arrival(policy, 500, p).acceptance
        series.append((f"p = {p}", [float(i) for i in arrivals], [float(found[i - 1]) for i in arrivals]))
    return _figure(
        chart(series, "arrival (log scale)", "chance of acceptance", log_x=True),
        f"Added: sequence unfairness, exactly. The chance that the i-th arrival is accepted, c = {COST}, γ = 0.99.",
    )


def _figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{_text(caption)}</figcaption></figure>"


def chart(series: Sequence[Series], x_label: str, y_label: str, log_x: bool = False) -> str:
    """A line chart as SVG, in the page's colours.

    >>> chart([("a", [0, 1], [0, 2])], "x", "y").startswith("<svg")
    True
    """
    width, height, left, bottom, top, right = 480, 330, 52, 46, 14, 22  # to the right, half a label of four digits
    xs = [x for _, values, _ in series for x in values]
    ys = [y for _, _, values in series for y in values]
    low, high = min(xs), max(xs)
    y_ticks = _ticks(min(0.0, *ys), max(ys))
    floor, ceiling = y_ticks[0], max(y_ticks[-1], max(ys))

    def at_x(x: float) -> float:
        share = math.log(x / low) / math.log(high / low) if log_x else (x - low) / (high - low)
        return left + share * (width - left - right)

    def at_y(y: float) -> float:
        return height - bottom - (y - floor) / (ceiling - floor) * (height - bottom - top)

    x_ticks = [10.0**e for e in range(9) if low <= 10.0**e <= high] if log_x else _ticks(low, high)
    parts = [
        f'<line class="grid" x1="{left}" x2="{width - right}" y1="{at_y(y):.1f}" y2="{at_y(y):.1f}"/>'
        f'<text x="{left - 7}" y="{at_y(y) + 4:.1f}" text-anchor="end">{y:g}</text>'
        for y in y_ticks
    ]
    parts += [
        f'<text x="{at_x(x):.1f}" y="{height - bottom + 18}" text-anchor="middle">{x:g}</text>'
        for x in x_ticks
        if low <= x <= high
    ]
    parts.append(f'<line class="axis" x1="{left}" x2="{width - right}" y1="{at_y(floor)}" y2="{at_y(floor)}"/>')
    parts.append(
        f'<text x="{(left + width) / 2}" y="{height - 8}" text-anchor="middle">{_text(x_label)}</text>'
        f'<text transform="translate(14 {(height - bottom) / 2}) rotate(-90)" text-anchor="middle">'
        f"{_text(y_label)}</text>"
    )
    for i, (label, x_values, y_values) in enumerate(series):
        points = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in zip(x_values, y_values, strict=True))
        look = f"stroke:var(--c{i % 8});stroke-dasharray:{DASHES[i % 8]}"
        parts.append(f'<polyline class="curve" style="{look}" points="{points}"/>')
        # The key stands below the picture, three to a line: there it hides no curve.
        x0, y0 = left + (i % 3) * 145, height + 12 + 20 * (i // 3)
        parts.append(
            f'<line style="{look};stroke-width:2.5" x1="{x0}" x2="{x0 + 34}" y1="{y0}" y2="{y0}"/>'
            f'<text x="{x0 + 40}" y="{y0 + 4}">{_text(label)}</text>'
        )
    deep = height + 22 + 20 * ((len(series) - 1) // 3)
    title = f"{y_label} against {x_label}"
    return f'<svg viewBox="0 0 {width} {deep}" role="img" aria-label="{_text(title)}">{"".join(parts)}</svg>'


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers that cover a range."""
    rough = (high - low) / 5 or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def _text(text: str) -> str:
    return html.escape(text)
