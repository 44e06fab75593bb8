"""write_paper_report: the paper's claims, checked, as one self-contained HTML page.

Figures are inline SVG in the page's own colours, so they follow a dark style. The page fits a phone.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from lenience.analysis.acceptance_by_arrival import acceptance_by_arrival
from lenience.objectives.discounted import Discounted
from lenience.paper.check import check_paper
from lenience.paper.claim import COST, DISCOUNTS, FLAT, Claim, N, counted, figure_one
from lenience.reports.charts import LineSeries, line_chart
from lenience.reports.rendering import render

KINDS = {"holds": "holds", "made precise": "made", "holds with a correction": "corrected", "fails": "fails"}


def write_paper_report(path: str | Path, claims: Sequence[Claim] | None = None, seed: int = 2020) -> Path:
    """Check every claim of the paper and write the report.

    Parameters
    ----------
    path : str or Path
        The file to write. A path that ends in ``.md`` receives Markdown, any other the HTML report with figures.
    claims : sequence of Claim, optional
        Claims that were checked already, with ``seed``. By default all claims are checked now.
    seed : int, default 2020
        The seed of the random numbers.

    Returns
    -------
    Path
        The path of the report.

    Examples
    --------
    >>> import tempfile
    >>> claim = Claim("3.1", "p̂ < 1", "holds", "Seen.", "More.")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_paper_report(f"{folder}/paper.md", [claim])
    ...     print(page.read_text(encoding="utf-8").splitlines()[0])
    # The paper, claim by claim
    """
    checked = list(check_paper(seed) if claims is None else claims)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write = paper_page if target.suffix == ".md" else paper_report
    target.write_text(write(checked, seed), encoding="utf-8")
    return target


def paper_page(claims: Sequence[Claim], seed: int = 2020) -> str:
    """Return the claims as a page of Markdown, for a documentation site.

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
        f"writes a self-contained report with figures. Random numbers were drawn with seed {seed}. Times depend on the "
        "machine.",
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
    """Escape text for Markdown."""
    return html.escape(text, quote=False).replace("*", "\\*").replace("_", "\\_").replace("|", "\\|")


def paper_report(claims: Sequence[Claim], seed: int = 2020) -> str:
    """Return the report as the text of an HTML page."""
    return render(
        "paper.html",
        title="Optimal Policies for the Homogeneous Selective Labels Problem: every claim, checked",
        cards=[(f"{number}", verdict) for verdict, number in counted(list(claims))],
        figures=[*_figure_one(), _threshold_figure(), _sequence_figure()],
        claims=claims,
        kinds=KINDS,
        seed=seed,
    )


def _figure_one() -> Iterable[tuple[Markup, str]]:
    for discount, table in figure_one().items():
        series = [
            LineSeries(
                f"n = {n}" if n <= N else "known p (∞)", (np.arange(n + 1) / n).tolist(), table.values[n].tolist()
            )
            for n in (1, 2, 5, 10, 100, N + 1)
        ]
        yield (
            line_chart(series, "expected success rate p̂ = s/n", "value V(n, p̂)"),
            f"The paper's Figure 1: V^N(n, p̂) for N = 1000, c = {COST}, γ = {discount}, interpolated between "
            f"multiples of 1/n. Proved error at n = 100: {max(table.error(100), 1e-13):.1g} or less.",
        )


def _threshold_figure() -> tuple[Markup, str]:
    sizes = np.unique(np.rint(np.geomspace(1, 1000, 40))).astype(int)
    series = []
    for discount in DISCOUNTS:
        policy = Discounted(COST, discount).solve(FLAT)
        values = [policy.threshold(float(n), tolerance=1e-4).midpoint for n in sizes]
        series.append(LineSeries(f"γ = {discount}", [float(n) for n in sizes], values))
    series.append(LineSeries("cost c", [1.0, 1000.0], [COST, COST]))
    return (
        line_chart(series, "observations n (log scale)", "threshold c_n", log_x=True),
        "Added: the rate above which to accept. The leniency c − c_n falls like 1/n.",
    )


def _sequence_figure() -> tuple[Markup, str]:
    policy = Discounted(COST, 0.99).solve(FLAT)
    arrivals = np.unique(np.rint(np.geomspace(1, 500, 60))).astype(int)
    series = []
    for p in (0.6, 0.7, 0.75, 0.85, 0.9):
        acceptance = acceptance_by_arrival(policy, 500, p).acceptance
        chances = [float(acceptance[i - 1]) for i in arrivals]
        series.append(LineSeries(f"p = {p}", [float(i) for i in arrivals], chances))
    return (
        line_chart(series, "arrival (log scale)", "probability of acceptance", log_x=True),
        f"Added: how acceptance depends on the order of arrival, computed exactly, c = {COST}, γ = 0.99.",
    )
