"""Call the decision service from Python, with retries that are safe.

Every POST carries an Idempotency-Key, the same for all attempts of one call. If an answer is lost, the next attempt
receives the first answer again, and nothing is decided twice. A call therefore returns the service's answer or raises.

If the service has never answered, the address is probably wrong or the service is not running. The client then gives up
after a few attempts, and the error says what to do.
"""

from __future__ import annotations

import random
import time
import uuid
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlsplit

from lenience.client.feature_policies import feature_policy_body
from lenience.core.errors import InputError
from lenience.core.offers import Offer
from lenience.core.validation import listed, mapped, real, whole

if TYPE_CHECKING:
    import httpx

    from lenience.client.outcomes_import import OutcomesImport
    from lenience.client.portfolio_import import PortfolioImport
    from lenience.files.date_formats import Order
    from lenience.policies.features.feature_rule import FeatureRule
    from lenience.policies.features.policy import FeaturePolicy

Json = dict[str, Any]
Outcome = Literal["success", "failure"]
Interim = Literal["late", "current"]
INDIVIDUAL = "a mapping with segment, reference, features, offer or monitored, such as {'segment': 'young'}"
MONITORED = "a mapping of attributes to texts, such as {'sex': 'f'}"
OFFER = "an Offer, or a mapping such as {'amount': 1000, 'cost': 0.8} or {'gain': 200, 'loss': 800}"
TEMPORARY = (429, 502, 503, 504)  # HTTP statuses after which to try again
CONNECT_SECONDS = 5.0  # time limit for making a connection
FIRST_RETRIES = 2  # if the service has never answered; the waits take about 0.3 s


class ServiceError(Exception):
    """Raised when the service rejects a request or cannot be reached.

    Parameters
    ----------
    status : int
        The HTTP status; 0 if the service could not be reached.
    detail : str
        What is wrong, as a sentence.
    code : str
        The kind of problem, e.g. ``unknown_decision``; docs/service.md lists them. ``unreachable`` if the service could
        not be reached, ``not_a_service`` if something else answers at its address.
    field : str, optional
        The field that is wrong, if the service names one.

    Examples
    --------
    >>> print(ServiceError(404, "There is no policy 'cards'", "unknown_policy"))
    404: There is no policy 'cards'
    """

    def __init__(self, status: int, detail: str, code: str = "not_a_service", field: str | None = None) -> None:
        super().__init__(f"{status}: {detail}" if status else detail)
        self.status = status
        self.detail = detail
        self.code = code
        self.field = field

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.detail, self.code, self.field)


class Client:
    """A connection to a running service.

    Parameters
    ----------
    url : str
        The address that ``lenience serve`` prints.
    key : str, optional
        An API key, if the service has keys.
    retries : int, default 6
        How often to repeat a request after a lost connection or a temporary error (429, 502, 503, 504). The waits start
        at 0.1 s and double. A service that has never answered is tried at most twice more.
    timeout : float, default 30
        Seconds to wait for an answer.

    Raises
    ------
    InputError
        If the address is invalid or httpx is not installed.

    Notes
    -----
    Every method that calls the service raises :class:`ServiceError` if the service rejects the request or cannot be
    reached. ``idempotency_key`` identifies a call: two calls with the same key count once. By default each call has a
    new random key.

    Examples
    --------
    >>> with Client("http://127.0.0.1:8000", key="lk_…") as client:  # doctest: +SKIP
    ...     decision = client.decide("cards", segment="young", reference="application 17")
    ...     if decision["decision"] == "accept":
    ...         client.outcome(decision["id"], "success")
    """

    def __init__(self, url: str, key: str | None = None, retries: int = 6, timeout: float = 30.0) -> None:
        try:
            import httpx
        except ImportError:
            raise InputError.missing_package("clients", "httpx", "client") from None
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._url = _address(url)
        seconds = real("timeout", timeout, above=0)
        limits = httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
        self._http = httpx.Client(base_url=self._url, headers=headers, timeout=limits)
        self._retries = whole("retries", retries)
        self._reached = False

    def create_policy(
        self,
        specification: Mapping[str, Any] | FeaturePolicy | FeatureRule,
        *,
        name: str | None = None,
        reasons: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Json:
        """Create a version of a policy as a draft.

        Parameters
        ----------
        specification : mapping, FeaturePolicy or FeatureRule
            The policy, as docs/service.md describes it; or a fitted policy with declared columns, with all that it has
            learnt.
        name : str, optional
            The name of the policy. A fitted policy needs one.
        reasons : mapping, optional
            For a fitted policy: your own sentence for rejections because of a feature, by its name, such as
            ``{"income": "Your income is too low for this loan."}``. A specification has them in its model.
        idempotency_key : str, optional
            The key of the call.

        Returns
        -------
        dict
            The version that was created.

        Raises
        ------
        InputError
            If a fitted policy has no declared columns, or no name is given for it, or reasons are given for a
            specification.
        """
        if hasattr(specification, "to_rule") or hasattr(specification, "state_hash"):
            body = feature_policy_body(specification, name, reasons)
        elif reasons is not None:
            raise InputError.because(
                "must be given with a fitted policy", "reasons", code="conflicting_fields",
                hint='Put them into the specification: "model": {"type": "logistic", "reasons": {...}, ...}.',
            )  # fmt: skip
        else:
            body = dict(mapped("specification", specification, "a mapping, as the service's documentation describes"))
            if name is not None:
                body["name"] = name
        return self._post("/v1/policies", body, idempotency_key)

    def download(self, policy: str, version: int | None = None) -> FeaturePolicy:
        """Return a policy that decides by features, with all that it has learnt, as the library's own object.

        Parameters
        ----------
        policy : str
            The name of the policy.
        version : int, optional
            The version; by default the live one, or the newest if none is live.

        Returns
        -------
        FeaturePolicy
            The fitted policy, with an empty log. It decides as the service does.

        Raises
        ------
        ServiceError
            If the version does not decide by features.
        """
        from lenience.policies.features.feature_rule import FeatureRule
        from lenience.policies.features.policy import FeaturePolicy

        path = f"/v1/policies/{_part('policy', policy)}/model"
        answer = self._get(path, {} if version is None else {"version": version})
        return FeaturePolicy.from_rule(FeatureRule.from_state(b64decode(answer["state"])))

    def activate(
        self, policy: str, version: int | None = None, *, replaces: int | None = None, reason: str | None = None
    ) -> Json:
        """Make a version live.

        Parameters
        ----------
        policy : str
            The name of the policy.
        version : int, optional
            The version; by default the newest.
        replaces : int, optional
            The version that must be live now. If another one is, the service changes nothing and reports a conflict.
        reason : str, optional
            The reason for the change. It stays in the log permanently, so it must not contain personal data.

        Returns
        -------
        dict
            The version and its state.
        """
        body = _state_change(version, replaces=replaces, reason=reason)
        return self._post(f"/v1/policies/{_part('policy', policy)}/activate", body)

    def shadow(self, policy: str, version: int | None = None, *, reason: str | None = None) -> Json:
        """Run a version in the shadow of the live one: it decides too, but its decisions have no effect.

        Parameters
        ----------
        policy : str
            The name of the policy.
        version : int, optional
            The version; by default the newest.
        reason : str, optional
            The reason, which the change log records.

        Returns
        -------
        dict
            The version and its state.
        """
        return self._post(f"/v1/policies/{_part('policy', policy)}/shadow", _state_change(version, reason=reason))

    def roll_out(self, policy: str, percent: float, version: int | None = None, *, reason: str | None = None) -> Json:
        """Roll a version out to a percentage of applicants, next to the active version.

        Parameters
        ----------
        policy : str
            The name of the policy.
        percent : float
            The share of applicants that the version decides, from 0 to 100. 0 rolls it back.
        version : int, optional
            The version. By default the one in rollout, or else the newest.
        reason : str, optional
            The reason, which the change log of the policy records.

        Returns
        -------
        dict
            The version with its state and warnings.
        """
        body = {"percent": percent} | _state_change(version, reason=reason)
        return self._post(f"/v1/policies/{_part('policy', policy)}/rollout", body)

    def rollout(self, policy: str) -> Json | None:
        """Compare the version in rollout with the active one, in profit per applicant.

        Parameters
        ----------
        policy : str
            The name of the policy.

        Returns
        -------
        dict or None
            The profit per applicant of both versions, the difference with its interval, the ``verdict`` and a
            ``sentence``. None if no version is rolled out.
        """
        comparison: Json | None = self._get(f"/v1/policies/{_part('policy', policy)}/rollout")["rollout"]
        return comparison

    def retire(self, policy: str, version: int | None = None, *, reason: str | None = None) -> Json:
        """Retire a version.

        Parameters
        ----------
        policy : str
            The name of the policy.
        version : int, optional
            The version; by default the live one.
        reason : str, optional
            The reason, which the change log records.

        Returns
        -------
        dict
            The version and its state.
        """
        return self._post(f"/v1/policies/{_part('policy', policy)}/retire", _state_change(version, reason=reason))

    def policies(self) -> list[Json]:
        """Return all policies.

        Returns
        -------
        list of dict
            The policies with their versions.
        """
        policies: list[Json] = self._get("/v1/policies")["policies"]
        return policies

    def policy(self, name: str, version: int | None = None) -> Json:
        """Return the current state of a policy.

        Parameters
        ----------
        name : str
            The name of the policy.
        version : int, optional
            The version; by default the live one, or the newest if none is live.

        Returns
        -------
        dict
            Belief, pending outcomes, threshold, limit and value of each segment.
        """
        return self._get(f"/v1/policies/{_part('name', name)}", {} if version is None else {"version": version})

    def report(self, policy: str, version: int | None = None) -> Json:
        """Return how a version of a policy does, over its latest decisions.

        Parameters
        ----------
        policy : str
            The name of the policy.
        version : int, optional
            The version; by default the live one, or the newest if none is live.

        Returns
        -------
        dict
            Expected and actual success rates by band, regions without outcomes, and for a model that decides by
            features the effect of each feature and whether its values have changed.
        """
        query = {} if version is None else {"version": version}
        return self._get(f"/v1/policies/{_part('policy', policy)}/report", query)

    def monitoring(self, policy: str, version: int | None = None) -> Json:
        """Return whether the applicants, outcomes and acceptance of a version are as it expected.

        Parameters
        ----------
        policy : str
            The name of the policy.
        version : int, optional
            The version; by default the live one, or the newest if none is live.

        Returns
        -------
        dict
            Comparisons of the population, of outcomes and of acceptance, each with an interval, a state and a sentence.
        """
        query = {} if version is None else {"version": version}
        return self._get(f"/v1/policies/{_part('policy', policy)}/monitoring", query)

    def document(self, policy: str, version: int | None = None, file_type: str = "html") -> tuple[int, bytes]:
        """Return the documentation pack of a version, for model-risk reviews.

        Parameters
        ----------
        policy : str
            The name of the policy.
        version : int, optional
            The version; by default the live one, or else the newest.
        file_type : {"html", "docx"}
            An HTML page, or a Word file.

        Returns
        -------
        tuple of int and bytes
            The number of the version, and the file.
        """
        query: Json = {"file_type": file_type} | ({} if version is None else {"version": version})
        answer = self._get(f"/v1/policies/{_part('policy', policy)}/document", query)
        content = str(answer["content"])
        return int(answer["version"]), b64decode(content) if answer["file_type"] == "docx" else content.encode()

    def shadows(self, policy: str) -> list[Json]:
        """Compare the shadow versions of a policy with the active one.

        Parameters
        ----------
        policy : str
            The name of the policy.

        Returns
        -------
        list of dict
            For each shadow version, on how many decisions both agree, the difference in expected profit with an
            interval, what known outcomes show, and a verdict.
        """
        shadows: list[Json] = self._get(f"/v1/policies/{_part('policy', policy)}/shadows")["shadows"]
        return shadows

    def rejections(self, policy: str) -> Json:
        """Estimate how many of the rejected would have succeeded, and whether rejecting them was right.

        Parameters
        ----------
        policy : str
            The name of the policy.

        Returns
        -------
        dict
            A statement in words, and for each segment the rejected, the interval of how many would have succeeded, the
            break-even, a verdict, and what it costs to learn the same at random.
        """
        return self._get(f"/v1/policies/{_part('policy', policy)}/rejections")

    def decide(
        self,
        policy: str,
        segment: str | None = None,
        reference: str | None = None,
        features: Mapping[str, float | str | None] | None = None,
        *,
        offer: Offer | Mapping[str, float] | None = None,
        offers: Sequence[Offer | Mapping[str, float]] | None = None,
        monitored: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Json:
        """Accept or reject one individual.

        Parameters
        ----------
        policy : str
            The name of the policy.
        segment : str, optional
            The individual's segment.
        reference : str, optional
            Your own identifier of the individual. Outcomes can be recorded by it.
        features : mapping of str to float or str, optional
            The individual's features, if the policy uses features.
        offer : Offer or mapping, optional
            What the individual asks for, where amounts differ: an :class:`~lenience.Offer`, or a mapping with
            ``amount`` and ``cost``, with ``gain`` and ``loss``, or with ``amount``, ``rate`` and ``term``.
        offers : sequence of Offer or mapping, optional
            Several offers of which one can be made, instead of ``offer``. The service chooses.
        monitored : mapping of str to str, optional
            Attributes that fairness is measured by, e.g. ``{"sex": "f"}``. The decision does not look at them.
        idempotency_key : str, optional
            The key of the call.

        Returns
        -------
        dict
            The decision: ``id``, ``decision`` ("accept", "reject", "wait" or "refer") and the reasons. Where amounts
            differ also ``offer``, ``expected_profit`` and ``label_value``.

        Raises
        ------
        ServiceError
            If the service rejects the request or cannot be reached.
        """
        body = _individual(segment, reference, features)
        if offer is not None:
            body["offer"] = _offer("offer", offer)
        if offers is not None:
            several = listed("offers", offers, f"a list, each of them {OFFER}")
            body["offers"] = [_offer(f"offers[{i}]", each) for i, each in enumerate(several)]
        if monitored is not None:
            body["monitored"] = dict(mapped("monitored", monitored, MONITORED))
        return self._post(f"/v1/policies/{_part('policy', policy)}/decisions", body, idempotency_key)

    def decide_batch(
        self, policy: str, individuals: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> list[Json]:
        """Decide about several individuals in order, each as in a call of its own.

        Parameters
        ----------
        policy : str
            The name of the policy.
        individuals : sequence of mappings
            The individuals, each with ``segment``, ``reference``, ``features``, ``offer``, ``offers`` or ``monitored``
            (as mappings).
        idempotency_key : str, optional
            The key of the call.

        Returns
        -------
        list of dict
            The decisions in the same order.
        """
        several = listed("individuals", individuals, f"a list, each of them {INDIVIDUAL}")
        body = {"decisions": [dict(mapped(f"individuals[{i}]", each, INDIVIDUAL)) for i, each in enumerate(several)]}
        answer = self._post(f"/v1/policies/{_part('policy', policy)}/decisions/batch", body, idempotency_key)
        decisions: list[Json] = answer["decisions"]
        return decisions

    def rank(
        self,
        policy: str,
        individuals: Sequence[Mapping[str, Any]],
        *,
        capacity: int | None = None,
        budget: float | None = None,
        idempotency_key: str | None = None,
    ) -> Json:
        """Decide about several individuals of whom only some can be accepted: the best by index are chosen.

        Parameters
        ----------
        policy : str
            The name of the policy, whose objective has offers.
        individuals : sequence of mappings
            The individuals, each with ``offer`` or ``offers`` (as mappings), and ``segment``, ``reference`` or
            ``features``.
        capacity : int, optional
            The most acceptances.
        budget : float, optional
            The most money that the accepted may lose if all of them fail.
        idempotency_key : str, optional
            The key of the call.

        Returns
        -------
        dict
            ``decisions`` in the same order, ``order`` (positions, the best first), ``index`` of each, and the ``total``
            of the chosen with its ``bound``.
        """
        several = listed("individuals", individuals, f"a list, each of them {INDIVIDUAL}")
        body: Json = {
            "decisions": [dict(mapped(f"individuals[{i}]", each, INDIVIDUAL)) for i, each in enumerate(several)]
        }
        body |= {} if capacity is None else {"capacity": capacity}
        body |= {} if budget is None else {"budget": budget}
        return self._post(f"/v1/policies/{_part('policy', policy)}/rank", body, idempotency_key)

    def outcome(
        self,
        decision: str,
        outcome: Outcome | Interim,
        *,
        outcome_at: str | None = None,
        idempotency_key: str | None = None,
    ) -> Json:
        """Record the outcome of an accepted individual, or its interim status.

        Parameters
        ----------
        decision : str
            The id of the decision.
        outcome : {"success", "failure", "late", "current"}
            The outcome. ``late`` and ``current`` are interim statuses of a pending one and change no count.
        outcome_at : str, optional
            The date or time when it happened, such as "2026-01-31".
        idempotency_key : str, optional
            The key of the call.

        Returns
        -------
        dict
            The decision with its outcome.
        """
        body: Json = {"outcome": outcome} | ({} if outcome_at is None else {"outcome_at": outcome_at})
        return self._post(f"/v1/decisions/{_part('decision', decision)}/outcome", body, idempotency_key)

    def outcomes(
        self, outcomes: Mapping[str, Outcome], *, by_reference: bool = False, idempotency_key: str | None = None
    ) -> Json:
        """Record several outcomes.

        Parameters
        ----------
        outcomes : mapping of str to {"success", "failure"}
            The outcomes by decision id.
        by_reference : bool, default False
            Whether the keys of ``outcomes`` are references given to :meth:`decide` instead of ids.
        idempotency_key : str, optional
            The key of the call.

        Returns
        -------
        dict
            How many outcomes were recorded now, how many before, and the problems.
        """
        several = mapped("outcomes", outcomes, "a mapping of decisions to 'success' or 'failure'")
        which = "reference" if by_reference else "id"
        items = [{which: decision, "outcome": outcome} for decision, outcome in several.items()]
        return self._post("/v1/outcomes/batch", {"outcomes": items}, idempotency_key)

    def import_outcomes(
        self,
        source: str | Path | Mapping[str, object] | Iterable[object],
        *,
        id_column: str = "id",
        outcome_column: str = "outcome",
        reference_column: str | None = None,
        success: Iterable[str] = (),
        failure: Iterable[str] = (),
        pending: Iterable[str] = (),
        date_column: str | None = None,
        progress: Callable[[OutcomesImport], None] | None = None,
        sheet: str | None = None,
        dates: Order | None = None,
    ) -> OutcomesImport:
        """Record any number of outcomes from a file, a mapping or rows.

        It is safe to import the same file again. A line that cannot be read, or that the service rejects, is reported
        and does not stop the others.

        Parameters
        ----------
        source : path, mapping or iterable
            A CSV or Excel file, a mapping of decisions to outcomes, or rows (mappings or pairs).
        id_column : str, default "id"
            The column of the decisions' ids.
        outcome_column : str, default "outcome"
            The column of the outcomes.
        reference_column : str, optional
            The column of the references given to :meth:`decide`. It replaces ``id_column``.
        success : iterable of str, optional
            Words that mean success, in addition to the usual ones.
        failure : iterable of str, optional
            Words that mean failure, in addition to the usual ones.
        pending : iterable of str, optional
            Words that mean "not known yet", in addition to the usual ones.
        date_column : str, optional
            The column of the outcomes' own dates.
        progress : callable, optional
            Called with the counts so far after each batch.
        sheet : str, optional
            The sheet of an Excel file; by default the first that is not empty.
        dates : {"mdy", "dmy", "ymd"}, optional
            The order of the parts in dates such as 06/01/2011; by default the column decides.

        Returns
        -------
        OutcomesImport
            How many outcomes were recorded, and the problems.

        Raises
        ------
        InputError
            If the file cannot be read, a column does not exist, or a given word does not occur.
        """
        from lenience.client.outcomes_import import import_outcomes

        def send(items: list[dict[str, str]]) -> Json:
            try:
                answer = self._post("/v1/outcomes/batch", {"outcomes": items})
            except ServiceError as error:
                if error.code != "unknown_decisions":
                    raise
                # If the service knows none of the decisions, it rejects the whole batch.
                answer = {"problems": [{"position": i, "detail": _unknown(item)} for i, item in enumerate(items)]}
            else:
                for problem in answer["problems"]:  # which reference it was, the service does not repeat
                    item = items[problem["position"]]
                    if problem.get("code") == "unknown_reference":
                        problem["detail"] = _unknown(item)
                    elif "reference" in item:
                        problem["detail"] = f"reference {item['reference']!r}: {problem['detail']}"
            return answer

        column = id_column if reference_column is None else reference_column
        words = (success, failure, pending)
        by_reference = reference_column is not None
        return import_outcomes(
            source, send, column, outcome_column, progress, words, by_reference, date_column, sheet, dates
        )

    def import_portfolio(
        self,
        policy: str,
        path: str | Path,
        *,
        date: str,
        outcome: str,
        segment: str | Iterable[str] = (),
        features: Mapping[str, str] | None = None,
        reference: str | None = None,
        accepted: str | None = None,
        outcome_date: str | None = None,
        offer: Mapping[str, str] | None = None,
        monitor: Mapping[str, str] | Iterable[str] = (),
        success: Iterable[str] = (),
        failure: Iterable[str] = (),
        pending: Iterable[str] = (),
        late: Iterable[str] = (),
        current: Iterable[str] = (),
        expired: Iterable[str] = (),
        accepted_values: Iterable[str] = (),
        rejected_values: Iterable[str] = (),
        leave_out: bool = False,
        not_in_prior: bool = False,
        dry_run: bool = False,
        progress: Callable[[PortfolioImport], None] | None = None,
        dates: Order | None = None,
        sheet: str | None = None,
    ) -> PortfolioImport:
        """Import the past decisions of a file into a policy, with their own dates.

        Known outcomes count as evidence, and open loans are pending. All rows are checked first, and nothing is
        recorded if one is invalid. It is safe to import a file again, also after an interruption.

        Parameters
        ----------
        policy : str
            The policy.
        path : path
            A CSV, Excel or Parquet file.
        date : str
            The column of the decision's date.
        outcome : str
            The column of the outcome. An empty cell is an outcome that is not known yet.
        segment : str or iterable of str, optional
            The column of the segment, or several.
        features : mapping of str to str, optional
            The column of each feature of the policy.
        reference : str, optional
            The column of your own number of each loan, which must be unique.
        accepted : str, optional
            The column that says who was accepted. By default all were.
        outcome_date : str, optional
            The column of the outcome's date.
        offer : mapping of str to str, optional
            The column of each part of the offer, e.g. ``{"amount": "lent", "rate": "interest", "term": "years"}``.
        monitor : mapping of str to str or iterable of str, optional
            The column of each attribute that fairness is measured by, or columns that are named like it. Decisions do
            not look at them; an empty cell is unknown.
        success, failure, pending, late, current, expired : iterable of str, optional
            Words of the outcome, in addition to the usual ones.
        accepted_values, rejected_values : iterable of str, optional
            Words of the column ``accepted``, in addition to the usual ones.
        leave_out : bool, default False
            Whether to leave out rows that cannot be read. By default they are an error.
        not_in_prior : bool, default False
            Whether the outcomes are not among those that the policy's prior holds.
        dry_run : bool, default False
            Whether only to check the file.
        progress : callable, optional
            Called with the counts so far after each batch.
        dates : {"mdy", "dmy", "ymd"}, optional
            The order of the parts in dates such as 06/01/2011; by default the column decides.
        sheet : str, optional
            The sheet of an Excel file; by default the first that is not empty.

        Returns
        -------
        PortfolioImport
            How many decisions were recorded, and the problems.

        Raises
        ------
        InputError
            If the file cannot be read, a column does not exist, or rows are invalid.
        """
        from lenience.client.portfolio_import import PortfolioColumns, PortfolioWords, read_portfolio, send_portfolio

        columns = PortfolioColumns(
            date,
            outcome,
            (segment,) if isinstance(segment, str) else tuple(segment),
            reference,
            accepted,
            outcome_date,
            dict(features or {}),
            dict(offer or {}),
            dict(monitor) if isinstance(monitor, Mapping) else {name: name for name in monitor},
        )
        kinds = (success, failure, pending, late, current, expired, accepted_values, rejected_values)
        view = self.policy(policy)
        model = f"version {view['version']}, history_model {view['specification']['history_model']}"
        words = PortfolioWords(*map(tuple, kinds))
        portfolio = read_portfolio(path, columns, words, leave_out, model, not_in_prior, dates=dates, sheet=sheet)
        address = f"/v1/policies/{_part('policy', policy)}/import"
        return send_portfolio(portfolio, lambda batch: self._post(address, dict(batch)), dry_run, progress)

    def monitor(
        self, decision: str, monitored: Mapping[str, str | None], *, idempotency_key: str | None = None
    ) -> Json:
        """Add or correct the attributes of a decision that fairness is measured by. No decision looks at them.

        Parameters
        ----------
        decision : str
            The id of the decision.
        monitored : mapping of str to str or None
            The value of each attribute, e.g. ``{"sex": "f"}``. None removes one; those that are not named stay.
        idempotency_key : str, optional
            The key of the call.

        Returns
        -------
        dict
            The names of the decision's monitored attributes, and whether anything changed.
        """
        body = {"monitored": dict(mapped("monitored", monitored, MONITORED))}
        return self._post(f"/v1/decisions/{_part('decision', decision)}/monitored", body, idempotency_key)

    def monitor_batch(
        self,
        decisions: Mapping[str, Mapping[str, str | None]],
        *,
        by_reference: bool = False,
        idempotency_key: str | None = None,
    ) -> Json:
        """Add or correct the monitored attributes of several decisions.

        Parameters
        ----------
        decisions : mapping of str to mapping
            The attributes by decision id, e.g. ``{"0190…": {"sex": "f"}}``. None removes an attribute.
        by_reference : bool, default False
            Whether the keys of ``decisions`` are references given to :meth:`decide` instead of ids.
        idempotency_key : str, optional
            The key of the call.

        Returns
        -------
        dict
            For how many decisions attributes were recorded now, how many had them before, and the problems.
        """
        several = mapped("decisions", decisions, "a mapping of decisions to attributes")
        which = "reference" if by_reference else "id"
        items = [
            {which: decision, "monitored": dict(mapped("monitored", attributes, MONITORED))}
            for decision, attributes in several.items()
        ]
        return self._post("/v1/monitored/batch", {"decisions": items}, idempotency_key)

    def correct(self, decision: str, outcome: Outcome) -> Json:
        """Replace an outcome that was wrong.

        Parameters
        ----------
        decision : str
            The id of the decision.
        outcome : {"success", "failure"}
            The correct outcome.

        Returns
        -------
        dict
            The decision with its outcome.
        """
        return self._post(f"/v1/decisions/{_part('decision', decision)}/correction", {"outcome": outcome})

    def override(self, decision: str, choice: Literal["accept", "reject"], by: str, reason: str) -> Json:
        """Replace a decision by a person's choice.

        Parameters
        ----------
        decision : str
            The id of the decision.
        choice : {"accept", "reject"}
            What the person decides.
        by : str
            The person or the role.
        reason : str
            Why.

        Returns
        -------
        dict
            The decision after the override.
        """
        return self._post(
            f"/v1/decisions/{_part('decision', decision)}/override", {"decision": choice, "by": by, "reason": reason}
        )

    def review(
        self,
        decision: str,
        choice: Literal["accept", "reject"],
        reason: str,
        *,
        by: str = "reviewer",
        idempotency_key: str | None = None,
    ) -> Json:
        """Decide a referred case as a person.

        Parameters
        ----------
        decision : str
            The id of the decision, which is to refer.
        choice : {"accept", "reject"}
            What the person decides.
        reason : str
            Why. It is personal data and can be erased.
        by : str, default "reviewer"
            The role of the person, such as "credit officer". It stays in the log.
        idempotency_key : str, optional
            The key of the call.

        Returns
        -------
        dict
            The decision with its new status.
        """
        body = {"decision": choice, "reason": reason, "by": by}
        return self._post(f"/v1/decisions/{_part('decision', decision)}/review", body, idempotency_key)

    def referrals(
        self,
        policy: str,
        *,
        order: Literal["oldest", "worth"] = "oldest",
        after: str | None = None,
        limit: int = 100,
    ) -> Json:
        """List the cases that wait for a person, with what the policy thinks of each.

        Parameters
        ----------
        policy : str
            The name of the policy.
        order : {"oldest", "worth"}, default "oldest"
            Which come first: the oldest, or those where a review is worth most.
        after : str, optional
            The ``next`` of the previous page, for the oldest first.
        limit : int, default 100
            The most entries.

        Returns
        -------
        dict
            ``referrals``, how many are ``waiting`` in all, and ``next``.
        """
        query: Json = {"order": order, "limit": limit} | ({} if after is None else {"after": after})
        return self._get(f"/v1/policies/{_part('policy', policy)}/referrals", query)

    def reviews(self, policy: str) -> Json:
        """Return how often people and policy disagree on referred cases, and who was right.

        Parameters
        ----------
        policy : str
            The name of the policy.

        Returns
        -------
        dict
            The report: numbers, money with intervals, a ``verdict`` and a ``sentence``.
        """
        return self._get(f"/v1/policies/{_part('policy', policy)}/reviews")

    def proof(self, decision: str, *, size: int | None = None) -> Json:
        """Return the proof that a decision is in the log. ``lenience verify`` checks it without the service.

        Parameters
        ----------
        decision : str
            The id of the decision.
        size : int, optional
            The size of a checkpoint that you hold. By default the newest checkpoint.

        Returns
        -------
        dict
            The event, its place, the path of hashes and the signed checkpoint.
        """
        return self._get(f"/v1/decisions/{_part('decision', decision)}/proof", None if size is None else {"size": size})

    def checkpoint(self) -> Json:
        """Return the newest signed checkpoint of the log.

        Returns
        -------
        dict
            Its ``size`` (events), its ``time``, and the signed ``note``.
        """
        return self._get("/v1/log/checkpoint")

    def consistency(self, first: int, second: int) -> Json:
        """Return the proof that the log only grew between two checkpoints.

        Parameters
        ----------
        first : int
            The size of the earlier checkpoint.
        second : int
            The size of the later one.

        Returns
        -------
        dict
            The ``path`` of hashes that proves it.
        """
        return self._get("/v1/log/consistency", {"first": first, "second": second})

    def waiting(self, policy: str, *, after: str | None = None, limit: int = 100) -> Json:
        """List the individuals that wait for a place, longest first.

        Parameters
        ----------
        policy : str
            The name of the policy. Its version must have a waiting list.
        after : str, optional
            The ``next`` of the page before.
        limit : int, optional
            The size of a page.

        Returns
        -------
        dict
            The ``waiting`` individuals, each with ``accepts`` (whether it would be accepted now), and the ``next``.
        """
        query = {"limit": str(limit), **({} if after is None else {"after": after})}
        return self._get(f"/v1/policies/{_part('policy', policy)}/waiting", query)

    def decide_again(self, decision: str, *, idempotency_key: str | None = None) -> Json:
        """Decide a waiting individual again.

        Parameters
        ----------
        decision : str
            The id of the waiting decision.
        idempotency_key : str, optional
            The key of the call.

        Returns
        -------
        dict
            The new decision. Its ``again`` is the id of the waiting one.
        """
        return self._post(f"/v1/decisions/{_part('decision', decision)}/again", None, idempotency_key)

    def expire(self, policy: str, older_than_days: float) -> Json:
        """Stop waiting for outcomes that are overdue.

        Parameters
        ----------
        policy : str
            The name of the policy.
        older_than_days : float
            The age of a decision, in days, from which its outcome is no longer expected.

        Returns
        -------
        dict
            How many outcomes expired.
        """
        return self._post(f"/v1/policies/{_part('policy', policy)}/expire", {"older_than_days": older_than_days})

    def erase(self, decision: str) -> Json:
        """Erase the personal data of a decision. This cannot be undone.

        Parameters
        ----------
        decision : str
            The id of the decision.

        Returns
        -------
        dict
            The decision without its personal data.
        """
        return self._post(f"/v1/decisions/{_part('decision', decision)}/erasure", None)

    def erase_where(
        self,
        *,
        reference: str | None = None,
        older_than_days: float | None = None,
        policy: str | None = None,
        dry_run: bool = False,
    ) -> int:
        """Erase the personal data of all decisions that match. This cannot be undone.

        Parameters
        ----------
        reference : str, optional
            Only decisions with this reference.
        older_than_days : float, optional
            Only decisions older than this many days.
        policy : str, optional
            Only decisions of this policy.
        dry_run : bool, default False
            Whether to count the decisions without erasing anything.

        Returns
        -------
        int
            The number of decisions.
        """
        fields = {"reference": reference, "older_than_days": older_than_days, "policy": policy, "dry_run": dry_run}
        body = {name: value for name, value in fields.items() if value is not None}
        total: int = 0
        while True:
            answer = self._post("/v1/erasures", body)
            total += int(answer["found" if dry_run else "erased"])
            if answer["next"] is None:
                return total
            body["after"] = answer["next"]

    def decision(self, identity: str) -> Json:
        """Return a decision with its explanation.

        Parameters
        ----------
        identity : str
            The id of the decision.

        Returns
        -------
        dict
            The decision.
        """
        return self._get(f"/v1/decisions/{_part('identity', identity)}")

    def decisions(self, **filters: Any) -> Iterator[Json]:
        """Iterate over all decisions that match, oldest first.

        Parameters
        ----------
        **filters : Any
            Any of ``policy``, ``segment``, ``decision``, ``status``, ``reference``, ``since`` and ``until``.

        Yields
        ------
        dict
            A decision.
        """
        after: Json = {}
        while True:
            page = self._get("/v1/decisions", {"limit": 1000, **filters, **after})
            yield from page["decisions"]
            if page["next"] is None:
                return
            after = {"after": page["next"]}

    def feed(self, after: int = 0, *, limit: int = 1_000, personal: bool = False) -> Json:
        """Return what has changed since a cursor, in the order of the log, for a data warehouse.

        Parameters
        ----------
        after : int, default 0
            The cursor: ``next`` of the last answer.
        limit : int, default 1000
            How many events of the log are read.
        personal : bool, default False
            Whether rows have references and features. The key then needs the role admin.

        Returns
        -------
        dict
            ``rows``, the cursor ``next``, and ``more``, whether there are further rows now.
        """
        query = {"after": after, "limit": limit, **({"personal": "true"} if personal else {})}
        return self._get("/v1/export/feed", query)

    def ready(self) -> bool:
        """Check whether the service and its database answer now.

        Returns
        -------
        bool
            True if they do.
        """
        import httpx

        try:
            return self._http.get("/ready").status_code == 200
        except httpx.TransportError:
            return False

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _get(self, path: str, query: Mapping[str, Any] | None = None) -> Json:
        return self._send("GET", path, query=query)

    def _post(self, path: str, body: Json | None, key: str | None = None) -> Json:
        return self._send("POST", path, body=body, headers={"Idempotency-Key": key or str(uuid.uuid4())})

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Json | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        import httpx

        attempt = 0
        while True:
            try:
                response = self._http.request(method, path, params=query, json=body, headers=headers)
            except httpx.TransportError as error:
                never_reached = not self._reached and isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if attempt >= (min(self._retries, FIRST_RETRIES) if never_reached else self._retries):
                    raise ServiceError(0, self._explain_unreachable(error), "unreachable") from error
            else:
                is_json = "json" in response.headers.get("content-type", "")
                self._reached = self._reached or is_json
                if is_json and response.status_code < 400:
                    answer: Json = response.json()
                    return answer
                if attempt >= self._retries or response.status_code not in TEMPORARY:
                    raise self._rejection(response)
            time.sleep(0.1 * 2**attempt * (0.5 + random.random()))
            attempt += 1

    def _explain_unreachable(self, error: Exception) -> str:
        """Explain why the service cannot be reached, and what to do."""
        reason = str(error) or type(error).__name__
        if "Name or service not known" in reason or "nodename nor servname" in reason or "No address" in reason:
            return f"the host of {self._url} is unknown ({reason}): check the address"
        if self._reached:
            return f"the service at {self._url} can no longer be reached ({reason})"
        what_to_do = "start it with lenience serve, or check the address and the port"
        return f"no service answers at {self._url} ({reason}): {what_to_do}"

    def _rejection(self, response: httpx.Response) -> ServiceError:
        """Return the problem that the service reports, or the error that something else answers at its address."""
        with suppress(ValueError, KeyError, TypeError):
            problem = response.json()
            return ServiceError(response.status_code, str(problem["detail"]), _code(problem), problem.get("field"))
        kind = response.headers.get("content-type", "nothing").partition(";")[0]
        detail = (
            f"{self._url} does not answer as a decision service ({response.reason_phrase}, {kind}): "
            "check the address, which is the one that lenience serve prints"
        )
        return ServiceError(response.status_code, detail)


def _address(url: object) -> str:
    """Return the service's address; raise InputError if it is invalid."""
    allowed = "the service's address, such as http://127.0.0.1:8000"
    try:
        parts = urlsplit(str(url).strip())
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # the address or its port is malformed
        raise InputError("url", url, allowed) from None
    if not usable or parts.query or parts.fragment:
        raise InputError("url", url, allowed)
    if parts.path.rstrip("/").endswith("/v1"):
        raise InputError("url", url, "the service's address without /v1, which the client adds")
    return parts.geturl()


def _code(problem: Mapping[str, Any]) -> str:
    """Return the code of a problem; a service older than this client sends none."""
    return str(problem.get("code", "unknown"))


def _unknown(item: Mapping[str, str]) -> str:
    if "reference" in item:
        return f"no accepted decision has the reference {item['reference']!r}"
    return f"there is no decision {item['id']!r}"


def _state_change(version: int | None, replaces: int | None = None, reason: str | None = None) -> Json:
    """Return the body that changes the state of a version, without fields that are not given."""
    optional = {"replaces": replaces, "reason": reason}
    return {"version": version} | {name: value for name, value in optional.items() if value is not None}


def _part(field: str, value: str) -> str:
    """Quote a name or an id as part of a path. An empty one is an error because it would make another path."""
    if not isinstance(value, str) or not value:
        raise InputError(field, value, "a text that is not empty")
    return quote(value, safe="")


def _offer(field: str, offer: object) -> Json:
    """Return an offer as the service takes it."""
    if isinstance(offer, Offer):
        return {"amount": offer.amount, "cost": offer.cost}
    return dict(mapped(field, offer, OFFER))


def _individual(segment: str | None, reference: str | None, features: Mapping[str, float | str | None] | None) -> Json:
    body: Json = {}
    if segment is not None:
        body["segment"] = segment
    if reference is not None:
        body["reference"] = reference
    if features is not None:
        body["features"] = dict(mapped("features", features, "a mapping of names to values"))
    return body
