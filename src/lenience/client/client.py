"""Client: the decision service from Python, with retries that are safe.

Every POST carries an Idempotency-Key, the same for all tries of one call: a request whose answer was lost is answered
again with what was decided, not decided again. So a call either returns the service's answer or raises.

A service that has never answered is mostly one that is not there, or elsewhere: to reach it for the first time is not
tried for long, and the error says what to do.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlsplit

from lenience.core.errors import InputError
from lenience.core.validation import listed, mapped, real, whole

if TYPE_CHECKING:
    import httpx

    from lenience.client.outcomes_import import OutcomesImport

Json = dict[str, Any]
Outcome = Literal["success", "failure"]
INDIVIDUAL = "a mapping with segment, reference or features, such as {'segment': 'young'}"
AGAIN = (429, 502, 503, 504)
CONNECT_SECONDS = 5.0  # the most that a connection may take to be made
FIRST_RETRIES = 2  # of a service that has never answered: 0.3 s or so


class ServiceError(Exception):
    """The service refused a request, or was not reached.

    Parameters
    ----------
    status
        The HTTP status, 0 if the service was not reached.
    detail
        What is wrong, as a sentence.
    code
        What kind of problem it is, such as ``unknown_decision``: see the list in docs/service.md. ``unreachable`` if
        the service was not reached, ``not_a_service`` if something else answers at its address.
    field
        The field at fault, where the service names one.
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

    ``url`` is the address that ``lenience serve`` prints. ``retries`` is how often a request is tried again after a
    lost connection or an answer that says «not now» (503); the waits between double from 0.1 s on. A service that has
    never answered, and to which no connection is made, is tried again twice at most.

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
        patience = httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
        self._http = httpx.Client(base_url=self._url, headers=headers, timeout=patience)
        self._retries = whole("retries", retries)
        self._reached = False

    def create_policy(self, specification: Mapping[str, Any], *, idempotency_key: str | None = None) -> Json:
        """Make a version of a policy, as a draft."""
        body = dict(mapped("specification", specification, "a mapping, as the service's documentation describes"))
        return self._post("/v1/policies", body, idempotency_key)

    def activate(self, policy: str, version: int | None = None, *, replaces: int | None = None) -> Json:
        """Let a version rule, by default the newest; if it ``replaces`` one, only if that one rules."""
        body = {"version": version} if replaces is None else {"version": version, "replaces": replaces}
        return self._post(f"/v1/policies/{_part('policy', policy)}/activate", body)

    def shadow(self, policy: str, version: int | None = None) -> Json:
        """Let a version decide beside the active one, without ruling."""
        return self._post(f"/v1/policies/{_part('policy', policy)}/shadow", {"version": version})

    def retire(self, policy: str, version: int | None = None) -> Json:
        """Retire a version; by default the active one."""
        return self._post(f"/v1/policies/{_part('policy', policy)}/retire", {"version": version})

    def policies(self) -> list[Json]:
        """All policies."""
        found: list[Json] = self._get("/v1/policies")["policies"]
        return found

    def policy(self, name: str, version: int | None = None) -> Json:
        """A policy as it stands: belief, pending, threshold, limit and value of each segment."""
        return self._get(f"/v1/policies/{_part('name', name)}", {} if version is None else {"version": version})

    def decide(
        self,
        policy: str,
        segment: str | None = None,
        reference: str | None = None,
        features: Mapping[str, float | str] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Json:
        """Accept or reject one individual."""
        body = _individual(segment, reference, features)
        return self._post(f"/v1/policies/{_part('policy', policy)}/decisions", body, idempotency_key)

    def decide_batch(
        self, policy: str, individuals: Sequence[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> list[Json]:
        """Decide several in order, each as if alone; each is a mapping with segment, reference or features."""
        several = listed("individuals", individuals, f"a list, each of them {INDIVIDUAL}")
        body = {"decisions": [dict(mapped(f"individuals[{i}]", one, INDIVIDUAL)) for i, one in enumerate(several)]}
        answer = self._post(f"/v1/policies/{_part('policy', policy)}/decisions/batch", body, idempotency_key)
        decisions: list[Json] = answer["decisions"]
        return decisions

    def outcome(self, decision: str, outcome: Outcome, *, idempotency_key: str | None = None) -> Json:
        """Record what became of an accepted individual."""
        return self._post(f"/v1/decisions/{_part('decision', decision)}/outcome", {"outcome": outcome}, idempotency_key)

    def outcomes(
        self, outcomes: Mapping[str, Outcome], *, by_reference: bool = False, idempotency_key: str | None = None
    ) -> Json:
        """Record several outcomes, by the ids of their decisions, or by the references given when they were decided."""
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
        progress: Callable[[OutcomesImport], None] | None = None,
    ) -> OutcomesImport:
        """Record outcomes from a CSV file (a path), a mapping of decisions to outcomes, or rows, of any number.

        It is safe to repeat. Lines that cannot be read or are refused are told, and do not hinder the others;
        ``progress`` is called after each batch with what is done so far. Instead of ids a ``reference_column`` may hold
        the references given when they were decided; ``success``, ``failure`` and ``pending`` (not known yet) are words
        beside those that are known.
        """
        from lenience.client.outcomes_import import import_outcomes

        def send(items: list[dict[str, str]]) -> Json:
            try:
                answer = self._post("/v1/outcomes/batch", {"outcomes": items})
            except ServiceError as error:
                if error.code != "unknown_decisions":
                    raise
                # The service rejects a batch of which it knows nothing as a whole.
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
        return import_outcomes(source, send, column, outcome_column, progress, words, reference_column is not None)

    def correct(self, decision: str, outcome: Outcome) -> Json:
        """Replace an outcome that was wrong."""
        return self._post(f"/v1/decisions/{_part('decision', decision)}/correction", {"outcome": outcome})

    def override(self, decision: str, choice: Literal["accept", "reject"], by: str, reason: str) -> Json:
        """Decide otherwise, as a person with a role and a reason."""
        return self._post(
            f"/v1/decisions/{_part('decision', decision)}/override", {"decision": choice, "by": by, "reason": reason}
        )

    def expire(self, policy: str, older_than_days: float) -> Json:
        """Give up outcomes that have not come."""
        return self._post(f"/v1/policies/{_part('policy', policy)}/expire", {"older_than_days": older_than_days})

    def erase(self, decision: str) -> Json:
        """Erase the personal data of a decision."""
        return self._post(f"/v1/decisions/{_part('decision', decision)}/erasure", None)

    def erase_where(
        self,
        *,
        reference: str | None = None,
        older_than_days: float | None = None,
        policy: str | None = None,
        dry_run: bool = False,
    ) -> int:
        """Erase the personal data of all decisions with a reference, or older than so many days; of how many it was.

        It cannot be undone; in a ``dry_run`` they are only counted.
        """
        asked = {"reference": reference, "older_than_days": older_than_days, "policy": policy, "dry_run": dry_run}
        body = {name: value for name, value in asked.items() if value is not None}
        total: int = 0
        while True:
            answer = self._post("/v1/erasures", body)
            total += int(answer["found" if dry_run else "erased"])
            if answer["next"] is None:
                return total
            body["after"] = answer["next"]

    def decision(self, identity: str) -> Json:
        """A decision explained."""
        return self._get(f"/v1/decisions/{_part('identity', identity)}")

    def decisions(self, **filters: Any) -> Iterator[Json]:
        """All decisions that match (policy, segment, decision, status, reference, since, until), oldest first."""
        after: Json = {}
        while True:
            page = self._get("/v1/decisions", {"limit": 1000, **filters, **after})
            yield from page["decisions"]
            if page["next"] is None:
                return
            after = {"after": page["next"]}

    def ready(self) -> bool:
        """Whether the service and its database answer now."""
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
                nobody = not self._reached and isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if attempt >= (min(self._retries, FIRST_RETRIES) if nobody else self._retries):
                    raise ServiceError(0, self._unreached(error), "unreachable") from error
            else:
                told = "json" in response.headers.get("content-type", "")
                self._reached = self._reached or told
                if told and response.status_code < 400:
                    answer: Json = response.json()
                    return answer
                if attempt >= self._retries or response.status_code not in AGAIN:
                    raise self._refused(response)
            time.sleep(0.1 * 2**attempt * (0.5 + random.random()))
            attempt += 1

    def _unreached(self, error: Exception) -> str:
        """Why the service cannot be reached, and what to do."""
        said = str(error) or type(error).__name__
        if "Name or service not known" in said or "nodename nor servname" in said or "No address" in said:
            return f"the host of {self._url} is not known ({said}): check the address"
        if self._reached:
            return f"the service at {self._url} can no longer be reached ({said})"
        what_to_do = "start it with lenience serve, or check the address and the port"
        return f"no service answers at {self._url} ({said}): {what_to_do}"

    def _refused(self, response: httpx.Response) -> ServiceError:
        """Return the problem that the service reports, or that something else answers there."""
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
    """The service's address, or a refusal at once."""
    allowed = "the service's address, such as http://127.0.0.1:8000"
    try:
        parts = urlsplit(str(url).strip())
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # no address, or no port
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


def _part(field: str, value: str) -> str:
    """A name or an id as a part of an address; an empty one would be another address."""
    if not isinstance(value, str) or not value:
        raise InputError(field, value, "a text that is not empty")
    return quote(value, safe="")


def _individual(segment: str | None, reference: str | None, features: Mapping[str, float | str] | None) -> Json:
    body: Json = {}
    if segment is not None:
        body["segment"] = segment
    if reference is not None:
        body["reference"] = reference
    if features is not None:
        body["features"] = dict(mapped("features", features, "a mapping of names to values"))
    return body
