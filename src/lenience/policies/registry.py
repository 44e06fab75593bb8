"""Create policies by name (command line, sweep files) and read them from JSON.

A name is the policy's tag, with hyphens or underscores. Its parameters are the fields of its class.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from lenience.core.belief import Belief
from lenience.core.errors import InputError
from lenience.core.offers import Offers
from lenience.core.protocols import Policy
from lenience.objectives import Delayed, Discounted, FiniteHorizon

Made = TypeVar("Made")

# The module and the class of each tag. Add new policies here.
POLICIES: Mapping[str, tuple[str, str]] = {
    "bayes_ucb": ("bayes_ucb", "BayesUCB"),
    "blind": ("pending", "Blind"),
    "capped": ("pending", "Capped"),
    "constant": ("constant", "Constant"),
    "decaying_epsilon": ("decaying_epsilon", "DecayingEpsilon"),
    "epsilon_greedy": ("epsilon_greedy", "EpsilonGreedy"),
    "explore_then_exploit": ("explore_then_exploit", "ExploreThenExploit"),
    "exposure": ("exposure", "ExposurePolicy"),
    "estimated_exposure": ("estimated_exposure", "EstimatedExposurePolicy"),
    "forgetting": ("forgetting", "Forgetting"),
    "gittins": ("gittins", "Gittins"),
    "greedy": ("greedy", "Greedy"),
    "kl_ucb": ("kl_ucb", "KLUCB"),
    "logistic": ("logistic", "Logistic"),
    "optimal": ("optimal", "OptimalPolicy"),
    "persistent": ("persistent", "Persistent"),
    "semi_logistic": ("semi_logistic", "SemiLogistic"),
    "thompson": ("thompson", "Thompson"),
}
# Policies that look at the offer.
OFFER_POLICIES: Mapping[str, tuple[str, str]] = {
    "greedy_offers": ("offer_baselines", "GreedyOffers"),
    "horizon_offers": ("horizon_offers", "HorizonOfferPolicy"),
    "offers": ("offers", "OfferPolicy"),
}
ALL_POLICIES: Mapping[str, tuple[str, str]] = {**POLICIES, **OFFER_POLICIES}


def policy_names() -> list[str]:
    """Return the names that :func:`policy_named` accepts.

    Returns
    -------
    list of str
        The names, sorted.

    Examples
    --------
    >>> policy_names()[:4]
    ['always-accept', 'bayes-ucb', 'blind', 'capped']
    """
    solved = {"estimated_exposure"}  # `exposure` solves for it where a proof takes too long
    tags = [tag.replace("_", "-") for tag in ALL_POLICIES if tag not in solved]
    return sorted([*tags, "always-accept", "finite-horizon"])


def policy_named(name: str, **parameters: Any) -> Policy:
    """Create a policy from its name and parameters.

    ``optimal``, ``finite-horizon`` and ``exposure`` solve a problem. ``optimal`` takes cost, discount and prior;
    ``finite-horizon`` takes cost, horizon, prior and, optionally, discount; ``exposure`` takes cost, arrivals,
    discount_rate, label_delay and prior. ``offers`` and ``horizon-offers`` take offers instead of the cost. For the
    others, the parameters are those of the class.

    Parameters
    ----------
    name : str
        One of :func:`policy_names`.
    **parameters : object
        The parameters of the policy. ``prior`` may be a Belief or a mapping with n and s.

    Returns
    -------
    Policy
        The policy.

    Raises
    ------
    InputError
        If the name or a parameter is unknown, or if a parameter is missing or invalid.

    Examples
    --------
    >>> policy_named("bayes-ucb", cost=0.8, quantile=0.9)
    BayesUCB(cost=0.8, quantile=0.9)
    >>> policy_named("best-guess", cost=0.8)
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: policy must be one of always-accept, bayes-ucb, ..., thompson, not 'best-guess'
    """
    make = _maker(name)
    if isinstance(parameters.get("prior"), Mapping):
        parameters["prior"] = named_belief("prior", parameters["prior"])
    return _create(name, make, parameters)


def named_belief(field: str, values: Mapping[str, object]) -> Belief:
    """Create a belief from a mapping with n and s.

    >>> named_belief("prior", {"n": 2, "s": 1})
    Belief(n=2.0, s=1.0)
    """
    if set(values) != {"n", "s"}:
        raise InputError.because(
            f"must have exactly n and s, not {', '.join(sorted(map(str, values))) or 'nothing'}",
            field,
            value=dict(values),
            allowed="n and s",
        )
    return Belief(**values)  # type: ignore[arg-type]  # Belief checks its own fields


def takes(name: str, parameter: str) -> bool:
    """Return whether a policy has a parameter of this name, so that a study can fill it in.

    >>> takes("greedy", "cost"), takes("constant", "cost")
    (True, False)
    """
    return parameter in inspect.signature(_maker(name)).parameters


def policy_from_json(text: str | bytes) -> Policy:
    """Read a policy of any kind from the JSON text that its ``to_json`` wrote.

    Parameters
    ----------
    text : str or bytes
        The JSON text.

    Returns
    -------
    Policy
        The policy.

    Raises
    ------
    InputError
        If the text is not the JSON of a policy.

    Examples
    --------
    >>> from lenience.policies.beliefs.greedy import Greedy
    >>> policy_from_json(Greedy(cost=0.8).to_json())
    Greedy(cost=0.8)
    """
    if not isinstance(text, str | bytes):
        raise InputError("text", text, "the JSON of a policy, as text")
    try:
        fields = msgspec.json.decode(text)
    except msgspec.MsgspecError as error:
        raise InputError.because(
            f"This is not the JSON of a policy: {error}", "text", label="", code="invalid_json"
        ) from error
    if not isinstance(fields, dict) or "type" not in fields:
        raise InputError.because(
            "This is not the JSON of a policy: it must be an object with a 'type'",
            "text",
            label="",
            code="invalid_json",
        )
    tag = fields["type"]
    if tag not in ALL_POLICIES:
        raise InputError.unknown_name("type", tag, sorted(ALL_POLICIES))
    kind = _class(tag)
    if isinstance(fields.get("policy"), dict):  # a policy that contains another
        inner = policy_from_json(msgspec.json.encode(fields["policy"]))
        given = {name: value for name, value in fields.items() if name != "type"} | {"policy": inner}
        outer: Policy = _create(tag, kind, given)
        return outer
    if "policy" in getattr(kind, "__struct_fields__", ()):
        raise InputError.because("must be the JSON of a policy", "policy", code="invalid_json")
    if hasattr(kind, "from_json"):
        policy: Policy = kind.from_json(text)
        return policy
    try:
        return msgspec.convert(fields, type=kind)  # type: ignore[no-any-return]
    except msgspec.MsgspecError as error:
        raise InputError.because(
            f"is not the JSON of the policy {tag!r}: {error}", "text", code="invalid_file"
        ) from error


def label_of(thing: object, leave_out: Sequence[str] = ("cost", "prior", "tolerance")) -> str:
    """Return a short name of a policy or a world for tables and legends: its tag and its distinguishing parameters.

    >>> label_of(policy_named("epsilon-greedy", cost=0.8, epsilon=0.05))
    'epsilon-greedy (epsilon=0.05)'
    """
    if not isinstance(thing, msgspec.Struct) or thing.__struct_config__.tag is None:
        return repr(thing)
    config = thing.__struct_config__
    name = str(config.tag).replace("_", "-")
    usual = {field.name: field.default for field in msgspec.structs.fields(type(thing))} if config.omit_defaults else {}
    fields = [
        field
        for field in getattr(type(thing), "__struct_fields__", ())
        if field not in leave_out
        and not (isinstance(usual.get(field), float) and getattr(thing, field) == usual[field])
    ]
    parameters = [f"{field}={text}" for field in fields if (text := _short(getattr(thing, field))) is not None]
    return f"{name} ({', '.join(parameters)})" if parameters else name


def _short(value: object) -> str | None:
    """Return a parameter in a few characters, or None if it has no short form (a table, a certificate)."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return f"{value:g}"
    if isinstance(value, Belief):
        return f"Beta({value.alpha:g}, {value.beta:g})"
    if isinstance(value, tuple) and 0 < len(value) <= 6:
        return "/".join(str(_short(each)) for each in value)
    if isinstance(value, msgspec.Struct):
        if value.__struct_config__.tag is not None:
            return label_of(value, ())
        return None if hasattr(value, "proved") else label_of_fields(value)
    return None


def label_of_fields(value: msgspec.Struct) -> str:
    """Return the fields of a small struct without a tag, such as a label delay: 'exponential/20/1/0'."""
    texts = [_short(getattr(value, field)) for field in value.__struct_fields__]
    return "/".join(text for text in texts if text is not None)


def _maker(name: str) -> Callable[..., Policy]:
    """Return the function or class that creates the policy of this name."""
    tag = name.replace("-", "_") if isinstance(name, str) else ""
    special: Mapping[object, Callable[..., Policy]] = {
        "always_accept": _always_accept,
        "exposure": _exposure,
        "finite_horizon": _finite_horizon,
        "horizon_offers": _horizon_offers,
        "offers": _offers,
        "optimal": _optimal,
    }
    if tag in special:
        return special[tag]
    if tag not in ALL_POLICIES:
        raise InputError.unknown_name("policy", name, policy_names())
    return _class(tag)  # type: ignore[no-any-return]


def _create(name: str, make: Callable[..., Made], parameters: Mapping[str, Any]) -> Made:
    """Call a constructor with these parameters. Raise an error that names any unknown or missing parameter."""
    signature = inspect.signature(make)
    for given in parameters:
        if given not in signature.parameters:
            known = ", ".join(signature.parameters) or "none"
            raise InputError(given, given, f"among {known}", label=f"the parameters of {name}", code="unknown_name")
    missing = [
        each for each, about in signature.parameters.items() if about.default is about.empty and each not in parameters
    ]
    if missing:
        raise InputError.because(f"needs {' and '.join(missing)}", missing, label=f"the policy {name}", code="missing")
    return make(**parameters)


def _class(tag: str) -> Any:
    """Import the class of a tag."""
    module, kind = ALL_POLICIES[tag]
    return getattr(import_module(f"lenience.policies.beliefs.{module}"), kind)


def _always_accept() -> Policy:
    """Create the policy that accepts everyone."""
    from lenience.policies.beliefs.constant import Constant

    return Constant(1.0)


def _optimal(cost: float, discount: float, prior: Belief) -> Policy:
    """Solve a Discounted problem."""
    policy: Policy = Discounted(cost, discount).solve(prior)
    return policy


def _exposure(cost: float, arrivals: float, discount_rate: float, label_delay: float, prior: Belief) -> Any:
    """Solve a Delayed problem."""
    return Delayed(cost, arrivals, discount_rate, label_delay).solve(prior)


def _offers(offers: Offers, discount: float, prior: Belief) -> Any:
    """Solve a Discounted problem with offers."""
    return Discounted(offers=offers, discount=discount).solve(prior)


def _horizon_offers(offers: Offers, horizon: int, prior: Belief, discount: float = 1.0) -> Any:
    """Solve a FiniteHorizon problem with offers."""
    return FiniteHorizon(offers=offers, horizon=horizon, discount=discount).solve(prior)


def _finite_horizon(cost: float, horizon: int, prior: Belief, discount: float = 1.0) -> Policy:
    """Solve a FiniteHorizon problem."""
    policy: Policy = FiniteHorizon(cost, horizon, discount).solve(prior)
    return policy
