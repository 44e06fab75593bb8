"""decision_expression: decide for a whole table inside the engine that holds it.

A solved policy is a small table: for each number k of new observations, the least number of new successes that is
accepted. As an expression this is a look-up in a constant array. Two kinds of beliefs are not in the table:

- Beliefs with more observations than it has rows. The table grows first.
- Beliefs off the prior's lattice (another prior, weighted counts). Each gets its own solve, as in
  :meth:`OptimalPolicy.accepts`, and its decision becomes a constant of the expression. The engine returns the distinct
  ones that it holds. More than a few thousand raise an error.

Guarantee: row by row the decision is that of ``policy.accepts``. A missing belief has a missing decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.lattice import LATTICE, ROUNDINGS, size_distance, success_distance
from lenience.files.source import without_engine_warnings

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from lenience.policies.beliefs.optimal import OptimalPolicy

MOST_OWN = 4096  # beliefs off the lattice, each with its own solve
MOST_ROWS = 100_000  # rows of the table that the expression holds as an array


def decision_expression(policy: OptimalPolicy, table: ir.Table, n: str = "n", s: str = "s") -> ir.BooleanColumn:
    """Return whether each row's belief is accepted, as a column of the table.

    Parameters
    ----------
    policy : OptimalPolicy
        The solved policy.
    table : ibis.Table
        The table, in any engine that Ibis supports.
    n : str
        The column with the numbers of observations, including the prior's.
    s : str
        The column with the numbers of successes, including the prior's.

    Returns
    -------
    ibis.BooleanColumn
        The decisions: true to accept, missing where the belief is missing.

    Raises
    ------
    InputError
        If the table lacks a column, or has too many observations or too many different beliefs off the lattice.

    Examples
    --------
    >>> import ibis, pyarrow
    >>> from lenience import Discounted
    >>> policy = Discounted(cost=0.8, discount=0.99).solve(Belief(2, 1))
    >>> applicants = ibis.memtable(pyarrow.table({"n": [10, 10, 100], "s": [6, 7, 78]}))
    >>> decided = applicants.mutate(accept=decision_expression(policy, applicants))
    >>> decided.accept.to_pyarrow().to_pylist()
    [False, True, True]
    """
    import ibis

    for name in (n, s):
        if name not in table.columns:
            raise InputError.unknown_name("column", name, table.columns, "the columns")
    size, good = table[n].cast("float64"), table[s].cast("float64")
    row, new = (size - policy.prior.n).round(), (good - policy.prior.s).round()
    on_row = (size - policy.prior.n - row).abs() <= _distance(size, size_distance(policy.prior))
    on_lattice = on_row & ((good - policy.prior.s - new).abs() <= _distance(good, success_distance(policy.prior)))
    inside = on_lattice & (row >= 0) & (row < policy._last_row()) & (new >= 0) & (new <= row)
    last, odd = _beyond(table, size, good, row, inside)
    rows = max(last + 1, 1)
    if rows > MOST_ROWS:
        raise InputError.because(
            f"must have fewer than {MOST_ROWS:,} observations beyond the prior's, not {rows:,}",
            "beliefs",
            value=rows,
            allowed=f"fewer than {MOST_ROWS:,} observations beyond the prior's",
        )
    least = policy._table(rows)[:rows]
    array = ibis.literal([int(value) for value in least], type="array<int32>")
    decided = new >= array[ibis.ifelse(inside, row, 0.0).cast("int32")]
    missing = size.isnull() | good.isnull()
    return ibis.cases((missing, ibis.null("boolean")), (inside, decided), else_=_own(policy, odd, size, good))


def _distance(numbers: Any, distance: float) -> Any:
    """Return how far each number may be from the lattice, as :func:`lenience.core.lattice.near` defines it."""
    import ibis

    return ibis.least(ibis.greatest(numbers.abs() * ROUNDINGS, distance), LATTICE)


def _beyond(table: Any, size: Any, good: Any, row: Any, inside: Any) -> tuple[int, list[tuple[float, float]]]:
    """Query the data for the largest row of the lattice and the distinct beliefs off it."""
    marked = table.select(size=size, good=good, row=row, inside=inside)
    marked = marked.filter(marked["size"].notnull() & marked.good.notnull())
    backend = table.get_backend()
    with without_engine_warnings():
        last = backend.to_pyarrow(marked.filter(marked.inside).agg(last=marked.row.max()))["last"][0].as_py()
        others = backend.to_pyarrow(marked.filter(~marked.inside).select("size", "good").distinct().limit(MOST_OWN + 1))
    odd = [(float(belief["size"]), float(belief["good"])) for belief in others.to_pylist()]
    if len(odd) > MOST_OWN:
        raise InputError(
            "beliefs",
            allowed=f"on the policy's lattice, with at most {MOST_OWN:,} different ones off it",
            hint="Solve with the prior that the table's counts were added to.",
        )
    return int(last or 0), odd


def _own(policy: OptimalPolicy, odd: list[tuple[float, float]], size: Any, good: Any) -> Any:
    """Return the decisions of beliefs off the lattice, as constants."""
    import ibis

    accepted = [belief for belief in odd if policy.accepts(Belief(*belief))]
    if not accepted:
        return ibis.literal(False)
    # Exact equality is right here because the numbers came from this table.
    return ibis.or_(*[(size == np.float64(n).item()) & (good == np.float64(s).item()) for n, s in accepted])
