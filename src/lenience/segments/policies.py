"""SegmentPolicies: the optimal policies of all segments, solved together and reused as long as they are good enough."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from lenience.core.belief import Belief
from lenience.core.bounds import Bounds
from lenience.core.certificate import Certificate
from lenience.core.errors import InputError
from lenience.core.mixture_belief import MixtureBelief
from lenience.core.objective import Objective
from lenience.core.offers import Offer, Offers
from lenience.core.validation import check_tolerance, real, whole
from lenience.objectives.discounted import Discounted
from lenience.policies.beliefs.offers import OfferDecision, OfferPolicy, offers_of
from lenience.policies.beliefs.optimal import OptimalPolicy
from lenience.segments.segments import Segment, Segments
from lenience.segments.staleness import gains_of_knowing, losses_of_keeping

if TYPE_CHECKING:
    import ibis.expr.types as ir

MOST_ROWS = 1000  # A table has at most this many rows by default, and grows on demand.
# Of a segment with offers or a mixture for a prior:
MOST_TABLE = 2e6  # states of a table
AT_ONCE_SECONDS, MOST_SECONDS = 0.02, 0.15  # for a solve, as estimated
SHORT_LOOK_AHEAD = 200  # rows; they suffice where much is known
CLOSE = 1e-5  # bounds that are close enough: of a label, relative to the mean amount, and relative to the value
COARSE = 1e-6  # a tolerance in units of the mean amount


class Solved(NamedTuple):
    """A segment's policy, the objective and the prior that it was solved for, and the optimal value there."""

    objective: Any
    prior: Belief | MixtureBelief
    policy: Any
    value: Bounds


class RefreshReport(msgspec.Struct, frozen=True):
    """What :meth:`SegmentPolicies.refresh` did.

    Parameters
    ----------
    solved
        The segments that were solved again.
    reused
        The number of segments whose tables were reused.
    loss
        A bound of what following the reused tables for ever earns less than the optimum of the new shares and priors,
        in units of the whole population's value.
    allowed
        The loss that was allowed, in the same units.

    Examples
    --------
    >>> from lenience import Belief, Discounted, Segments
    >>> objective = Discounted(0.8, 0.99)
    >>> policies = Segments.of({"a": 0.6, "b": 0.4}, objective, Belief(2, 1)).solve()
    >>> changed = Segments.of({"a": 0.61, "b": 0.39}, objective, Belief(2, 1))
    >>> policies, report = policies.refresh(changed, allowed_loss=0.5)
    >>> report.solved, report.reused, round(report.loss, 3)
    ((), 2, 0.039)
    """

    solved: tuple[str, ...]
    reused: int
    loss: float
    allowed: float


class SegmentPolicies(Mapping[str, Any]):
    """The policies of all segments, by name.

    :meth:`Segments.solve` creates it.

    Parameters
    ----------
    segments
        The segments.
    solved
        The solved policy of each segment, in their order.
    rows
        The number of rows of each table; None for as many as matter.
    tolerance
        The precision of the solves.
    allowed_loss
        The relative loss up to which segments with similar volumes share a table.
    workers
        The number of threads; None for all cores.
    seconds
        The longest time for one segment, by estimate; None without a limit.

    Examples
    --------
    >>> cells = Segments.of({"a": 0.5, "b": 0.25, "c": 0.25}, Discounted(0.8, 0.99), Belief(2, 1))
    >>> policies = cells.solve()
    >>> len(policies), policies.tables  # b and c agree in everything
    (3, 2)
    >>> policies.accepts("a", Belief(10, 7)), policies.accepts("b", Belief(10, 7))
    (True, False)
    """

    def __init__(
        self,
        segments: Segments,
        solved: Sequence[Solved],
        rows: int | None,
        tolerance: float,
        allowed_loss: float,
        workers: int | None,
        seconds: float | None = None,
    ) -> None:
        self.segments = segments
        self._solved = tuple(solved)
        self._by_name = dict(zip(segments.names, self._solved, strict=True))
        self._options = (rows, tolerance, allowed_loss, workers, seconds)

    @property
    def tables(self) -> int:
        """The number of tables. Segments with the same problem share one."""
        return len({id(entry.policy) for entry in self._solved})

    def accepts(
        self,
        name: str,
        belief: Belief | MixtureBelief | None = None,
        offer: Offer | Offers | Sequence[Offer] | None = None,
    ) -> bool:
        """Return whether the next member of a segment is accepted.

        Parameters
        ----------
        name : str
            The segment.
        belief : Belief or MixtureBelief, optional
            What is known of it; by default its prior.
        offer : Offer, Offers or sequence of Offer, optional
            The member's offer, or the offers to choose from, where the segment has offers. It may be left out if every
            member brings the same choice.

        Returns
        -------
        bool
            True to accept.

        Raises
        ------
        InputError
            If the segment is unknown, an offer is missing, or an offer is given to a segment with one break-even.

        Examples
        --------
        >>> from lenience import Belief, Discounted, Segments
        >>> cells = Segments.of({"many": 0.96, "few": 0.04}, Discounted(0.8, 0.99), Belief(2, 1))
        >>> policies = cells.solve()
        >>> policies.accepts("many"), policies.accepts("few"), policies.accepts("few", Belief(10, 9))
        (True, False, True)
        """
        cell = self.segments[name]
        known = cell.prior if belief is None else belief
        policy = self._by_name[name].policy
        if offer is None:
            return bool(policy.accepts(known))
        _check_takes_offers(cell, offer)
        return bool(policy.accepts(known, offer))

    def decide(
        self,
        name: str,
        belief: Belief | MixtureBelief | None = None,
        offer: Offer | Offers | Sequence[Offer] | None = None,
    ) -> OfferDecision:
        """Return the decision on the next member of a segment, and what it rests on.

        Parameters
        ----------
        name : str
            The segment.
        belief : Belief or MixtureBelief, optional
            What is known of it; by default its prior.
        offer : Offer, Offers or sequence of Offer, optional
            The member's offer, or the offers to choose from, where the segment has offers.

        Returns
        -------
        OfferDecision
            The decision, with nothing pending. A segment with one break-even has one offer, of amount 1.

        Raises
        ------
        InputError
            If the segment is unknown, an offer is missing, or an offer is given to a segment with one break-even.

        Examples
        --------
        >>> from lenience import Belief, Discounted, Segments
        >>> loans = Discounted(offers=Offers([500, 5000], [0.8, 0.8], currency="$"), discount=0.99)
        >>> policies = Segments.of({"low score": 0.4, "high score": 0.6}, loans, Belief(2, 1)).solve()
        >>> decision = policies.decide("low score", offer=Offer(500, 0.8))
        >>> decision.accepted, round(decision.expected_profit), round(decision.label_value.midpoint)
        (True, -150, 207)
        """
        cell = self.segments[name]
        known = cell.prior if belief is None else belief
        if offer is not None:
            _check_takes_offers(cell, offer)
        policy = self._by_name[name].policy
        if not hasattr(policy, "decide"):
            # The policy of one break-even has no value of a label ready. As a mixture of one, the belief is solved with
            # an offer of amount 1.
            policy = cell.own.solve(MixtureBelief.of(known), rows=1)
        decision: OfferDecision = policy.decide(known, offer)
        return decision

    def decide_table(
        self, table: ir.Table, segment: str = "segment", amount: str | None = None, cost: str | None = None
    ) -> ir.Table:
        """Decide a table of applicants inside the engine that holds it, each by what is known now.

        Parameters
        ----------
        table : ibis.Table
            The applicants, in any engine that Ibis supports.
        segment : str
            The column with the segment.
        amount : str, optional
            The column with the amount at stake (gain + loss) of the offer, where segments have offers.
        cost : str, optional
            The column with the break-even of the offer, where segments have offers.

        Returns
        -------
        ibis.Table
            The table with ``decision``, ``reason`` and ``success_rate``; with offers also ``expected_profit`` and
            ``label_value``. Rows of unknown segments and rows without a valid offer have no decision.

        Raises
        ------
        InputError
            If a column is missing, there are too many segments, or labels are late.

        Examples
        --------
        >>> import ibis, pyarrow
        >>> from lenience import Belief, Discounted, Segments
        >>> cells = Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.8, 0.99), {"a": Belief(10, 7), "b": Belief(9, 3)})
        >>> applicants = ibis.memtable(pyarrow.table({"segment": ["a", "b", "c"]}))
        >>> decided = cells.solve().decide_table(applicants).to_pyarrow()
        >>> decided["decision"].to_pylist(), decided["reason"].to_pylist()
        (['accept', 'reject', None], ['worth_learning', 'below_threshold', 'unknown_segment'])
        """
        from lenience.segments.table_decisions import decided, segment_figures

        return decided(segment_figures(self), table, segment, amount, cost)

    def segment_value(self, name: str) -> Bounds:
        """Return what a segment adds to the value of the whole population, from its prior on.

        Parameters
        ----------
        name : str
            The segment.

        Returns
        -------
        Bounds
            Proved bounds of the value.

        Raises
        ------
        InputError
            If the segment is unknown.

        Examples
        --------
        >>> from lenience import Belief, Discounted, Segments
        >>> policies = Segments.of({"many": 0.96, "few": 0.04}, Discounted(0.8, 0.99), Belief(2, 1)).solve()
        >>> round(policies.segment_value("many").midpoint, 3), policies.segment_value("few").midpoint
        (0.965, 0.0)
        """
        cell = self.segments[name]
        own = _own_value(cell, self._by_name[name])
        return own.scaled(cell.weight) if own.upper > 0.0 else own

    def value(self) -> Bounds:
        """Return the value of the whole population before anyone arrives: the sum of the segments' values.

        Returns
        -------
        Bounds
            Proved bounds of the value.

        Examples
        --------
        >>> cells = Segments.of({"a": 0.5, "b": 0.5}, Discounted(0.8, 0.99), Belief(2, 1))
        >>> policies = cells.solve()
        >>> abs(policies.value().midpoint - 2 * policies.segment_value("a").midpoint) < 1e-9
        True
        """
        parts = [self.segment_value(name) for name in self.segments.names]
        rounding = 1e-15 * sum(abs(part.lower) + abs(part.upper) for part in parts)
        return Bounds(
            math.fsum(part.lower for part in parts) - rounding, math.fsum(part.upper for part in parts) + rounding
        )

    def losses(self, segments: Segments) -> dict[str, float]:
        """Return a bound, for each segment, of what keeping its table loses if other shares and priors are right.

        Parameters
        ----------
        segments : Segments
            The segments with the shares and priors that are right.

        Returns
        -------
        dict
            For each segment, the bound of :func:`~lenience.segments.loss_of_keeping` times the segment's weight, in
            units of the whole population's value. Infinite if no bound is known.

        Examples
        --------
        >>> from lenience import Belief, Discounted, Segments
        >>> objective = Discounted(0.8, 0.99)
        >>> policies = Segments.of({"a": 0.6, "b": 0.4}, objective, Belief(2, 1)).solve()
        >>> losses = policies.losses(Segments.of({"a": 0.61, "b": 0.39}, objective, Belief(2, 1)))
        >>> {name: round(loss, 3) for name, loss in losses.items()}
        {'a': 0.02, 'b': 0.019}
        """
        shared = [cell.name for cell in self.segments if cell.name in segments]
        old = [self._by_name[name] for name in shared]
        new = [segments[name] for name in shared]
        own = [cell.own for cell in new]
        # No bound is known for late labels, offers and mixtures. There every changed segment is solved again.
        losses = {
            cell.name: 0.0 if (objective, cell.prior) == (entry.objective, entry.prior) else math.inf
            for cell, objective, entry in zip(new, own, old, strict=True)
        }
        bounded = [
            (cell, objective, entry)
            for cell, objective, entry in zip(new, own, old, strict=True)
            if _has_plain_table(objective, cell.prior) and _has_plain_table(entry.objective, entry.prior)
        ]
        bound = losses_of_keeping(
            [entry.objective.discount for _, _, entry in bounded],
            [entry.prior.n for _, _, entry in bounded],
            [entry.prior.s for _, _, entry in bounded],
            [objective.discount for _, objective, _ in bounded],
            [cell.prior.n for cell, _, _ in bounded],
            [cell.prior.s for cell, _, _ in bounded],
            [objective.cost for _, objective, _ in bounded],
        )
        for (cell, objective, entry), loss in zip(bounded, bound.tolist(), strict=True):
            losses[cell.name] = loss * cell.weight if objective.cost == entry.objective.cost else math.inf
        return losses

    def refresh(self, segments: Segments, allowed_loss: float = 0.01) -> tuple[SegmentPolicies, RefreshReport]:
        """Return the policies for changed shares or priors, solving only where keeping the table could lose too much.

        A table is kept if following it for ever, with the new share and prior, is proved to earn at most
        ``allowed_loss`` of the segment's clairvoyant value less than the optimum (:mod:`lenience.segments.staleness`).
        All kept tables together then lose at most this share of the whole population's clairvoyant value. A kept table
        applies to its own prior plus the outcomes observed since. A segment that is solved again starts from its new
        prior.

        Parameters
        ----------
        segments : Segments
            The segments with the new shares and priors.
        allowed_loss : float
            The relative loss up to which a table is kept, from 0 to below 1.

        Returns
        -------
        tuple of SegmentPolicies and RefreshReport
            The new policies, and what was solved and what keeping the others can lose.

        Examples
        --------
        >>> cells = Segments.of({"a": 0.5, "b": 0.25}, Discounted(0.8, 0.99), Belief(2, 1))
        >>> later, report = cells.solve().refresh(cells.with_shares({"a": 0.52, "b": 0.2501}))
        >>> report.solved, report.reused
        (('a',), 1)
        """
        allowed = real("allowed_loss", allowed_loss, least=0, below=1)
        rows, tolerance, merging, workers, seconds = self._options
        losses = self.losses(segments)
        clairvoyant = dict(zip(segments.names, _clairvoyant(segments.cells), strict=True))
        again = [cell for cell in segments if losses.get(cell.name, math.inf) > allowed * clairvoyant[cell.name]]
        solved = _solve_all(again, rows, tolerance, merging, workers, seconds)
        fresh = dict(zip([cell.name for cell in again], solved, strict=True))
        entries = [fresh[cell.name] if cell.name in fresh else self._by_name[cell.name] for cell in segments]
        reused = [name for name in segments.names if name not in fresh]
        report = RefreshReport(
            solved=tuple(fresh),
            reused=len(reused),
            loss=math.fsum(losses[name] for name in reused),
            allowed=allowed * math.fsum(clairvoyant[name] for name in reused),
        )
        return SegmentPolicies(segments, entries, *self._options), report

    def __getitem__(self, name: str) -> Any:
        self.segments[name]  # Raises an error for an unknown name.
        return self._by_name[name].policy

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        return f"SegmentPolicies({len(self):,} segments, {self.tables:,} tables)"


def solve_segments(
    segments: Segments,
    rows: int | None,
    tolerance: float,
    allowed_loss: float,
    workers: int | None,
    seconds: float | None = None,
) -> SegmentPolicies:
    """Solve all segments, each distinct problem once."""
    tolerance = check_tolerance(tolerance)
    rows = None if rows is None else whole("rows", rows, least=1)
    allowed = real("allowed_loss", allowed_loss, least=0, below=1)
    workers = None if workers is None else whole("workers", workers, least=1)
    within = None if seconds is None else real("seconds", seconds, above=0)
    solved = _solve_all(segments.cells, rows, tolerance, allowed, workers, within)
    return SegmentPolicies(segments, solved, rows, tolerance, allowed, workers, within)


def _solve_all(
    cells: Sequence[Segment],
    rows: int | None,
    tolerance: float,
    allowed: float,
    workers: int | None,
    seconds: float | None,
) -> list[Solved]:
    """Solve all cells, each distinct problem once, in threads."""
    keys = [(_merged(cell.own, allowed), cell.prior) for cell in cells]
    distinct = list(dict.fromkeys(keys))
    # Threads help because the kernel releases Python's lock. Each batch has long and short solves, so that batches take
    # similar time and are large compared with the overhead of a thread.
    distinct.sort(key=lambda key: -key[0].volume)
    cores = workers or os.cpu_count() or 1
    batches = [distinct[i :: 8 * cores] for i in range(min(8 * cores, len(distinct)))]
    with ThreadPoolExecutor(cores) as pool:
        results = pool.map(
            lambda batch: [_solve_one(own, prior, rows, tolerance, seconds) for own, prior in batch], batches
        )
        solved = {
            key: entry
            for batch, entries in zip(batches, results, strict=True)
            for key, entry in zip(batch, entries, strict=True)
        }
    return [solved[key] for key in keys]


def _solve_one(
    objective: Any, prior: Belief | MixtureBelief, rows: int | None, tolerance: float, seconds: float | None
) -> Solved:
    """Solve one problem, with wider bounds if it would take more than ``seconds``."""
    if not objective.stationary:
        policy = objective.solve(prior)
        return Solved(objective, prior, policy, policy.value(prior))
    count = rows or min(MOST_ROWS, math.ceil(8.0 * (1.0 + objective.volume)))
    if not isinstance(prior, Belief) or not _has_plain_table(objective, prior):
        return solve_offers_in_time(objective, prior, count, tolerance)
    from lenience.solvers.stopping.solve import look_ahead_within, solve_discounted

    own = Discounted(objective.cost, objective.discount)
    ahead = None
    if seconds is not None:
        ahead = look_ahead_within(prior.n, own.cost, own.discount, count, tolerance, seconds)
    solution = solve_discounted(prior.n, prior.s, own.cost, own.discount, count, tolerance, ahead)
    certificate = Certificate(
        tolerance, count, solution.look_ahead, solution.undecided, solution.width, solution.states
    )
    return Solved(own, prior, OptimalPolicy(own, prior, solution.accept_from, certificate), solution.value)


def solve_offers_in_time(objective: Any, prior: Belief | MixtureBelief, rows: int, tolerance: float) -> Solved:
    """Solve one problem with offers or a mixture, in a few seconds at most.

    Much evidence or a small volume is solved at once. A large volume takes long, although more volume hardly changes
    decisions there. The table is then that of a smaller volume, also for beliefs that are solved later. The
    bounds of the value are proved for the right volume, and wider where little is known.
    """
    from lenience.solvers.offers.solve import offer_seconds, solve_offers, table_states

    offers = offers_of(objective)
    count = rows
    while count > 1 and table_states(prior, offers, count) > MOST_TABLE:
        count //= 2
    seconds = offer_seconds(prior, offers, objective.discount, count, tolerance)
    precision, smaller = tolerance, objective
    if seconds > MOST_SECONDS:
        precision, volume = max(tolerance, COARSE), objective.volume
        while volume > 1.0 and offer_seconds(prior, offers, volume / (1.0 + volume), count, precision) > MOST_SECONDS:
            volume /= 1.5
        smaller = Discounted(objective.cost, volume / (1.0 + volume), offers=objective.offers)
    if seconds > AT_ONCE_SECONDS:
        short = OfferPolicy.solve(smaller, prior, count, precision, SHORT_LOOK_AHEAD)
        bounds = solve_offers(prior, offers, objective.discount, 1, tolerance, SHORT_LOOK_AHEAD).value
        unsure = float(np.max(short.table[1] - short.table[0], initial=0.0))
        if unsure <= CLOSE * offers.mean_amount and bounds.width <= CLOSE * bounds.upper:
            return Solved(objective, prior, short, bounds)
    policy = OfferPolicy.solve(smaller, prior, count, precision)
    if smaller is objective:
        return Solved(objective, prior, policy, policy.value(prior))
    ahead = count + policy.certificate.look_ahead
    return Solved(objective, prior, policy, solve_offers(prior, offers, objective.discount, 1, tolerance, ahead).value)


def _merged(objective: Objective, allowed: float) -> Objective:
    """Return the objective whose table is used: x = 1/(1 − γ) rounded so that it changes by at most ``allowed`` · x."""
    if allowed == 0.0 or not objective.stationary or objective.offers is not None:
        return objective
    step = 2.0 * math.log1p(allowed) if allowed < 0.5 else 0.8
    x = math.exp(round(math.log1p(objective.volume) / step) * step)
    return Discounted(objective.cost, 1.0 - 1.0 / x)


def _own_value(cell: Segment, entry: Solved) -> Bounds:
    """Return bounds of both the segment's optimal value and what its table earns."""
    own = cell.own
    if (own, cell.prior) == (entry.objective, entry.prior):
        return entry.value
    if not (_has_plain_table(own, cell.prior) and _has_plain_table(entry.objective, entry.prior)):
        value: Bounds = entry.policy.value(cell.prior)
        return value
    loss = losses_of_keeping(
        entry.objective.discount, entry.prior.n, entry.prior.s, own.discount, cell.prior.n, cell.prior.s, own.cost
    )
    # The optimum of the table's own problem differs by at most this from the optimum here, and from what the table
    # earns here.
    return Bounds(entry.value.lower - float(loss), entry.value.upper + float(loss))


def _clairvoyant(cells: Sequence[Segment]) -> list[float]:
    """Return what each segment could earn if p were known: G q/(1 − γ), in units of the whole population's value."""
    gain = np.zeros(len(cells))
    plain = [i for i, cell in enumerate(cells) if cell.objective.offers is None and isinstance(cell.prior, Belief)]
    gain[plain] = gains_of_knowing(
        [cells[i].prior.n for i in plain],
        [cells[i].prior.s for i in plain],
        [cells[i].objective.cost for i in plain],
    )
    for i in set(range(len(cells))).difference(plain):
        gain[i] = _gain_of_knowing(cells[i])
    scale = np.array([cell.weight * (1.0 + cell.volume) for cell in cells])
    return [float(value) for value in gain * scale]


def _gain_of_knowing(cell: Segment) -> float:
    """Return what an arrival earns on average if p is known: the best offer of each menu, or nothing."""
    from lenience.solvers.offers.solve import prepare

    # The profit at a known p is a sum of slope · (p − kink)⁺.
    arrays = prepare(offers_of(cell.objective))
    prior = MixtureBelief.of(cell.prior)
    return arrays.unit * math.fsum(
        weight * float(arrays.slope @ gains_of_knowing(belief.n, belief.s, arrays.kink))
        for belief, weight in zip(prior.beliefs, prior.weights, strict=True)
    )


def _has_plain_table(objective: Objective, prior: Belief | MixtureBelief) -> bool:
    """Return whether the optimum is a threshold for each belief size: one break-even, one belief, labels at once."""
    return objective.stationary and objective.offers is None and isinstance(prior, Belief)


def _check_takes_offers(cell: Segment, offer: object) -> None:
    """Raise InputError if a segment with one break-even is given an offer."""
    if cell.objective.offers is None:
        raise InputError.because(
            f"must be left out, because segment {cell.name!r} has one break-even for all",
            "offer",
            value=offer,
            code="conflicting_fields",
            hint="Solve the segment with offers= instead of cost= to decide offers.",
        )
