"""A fitted policy with features as the service takes it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import msgspec

from lenience.core.errors import InputError


def feature_policy_body(policy: Any, name: str | None, reasons: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the specification of a fitted policy, with all that it has learnt.

    Parameters
    ----------
    policy : FeaturePolicy or FeatureRule
        The policy, with declared columns.
    name : str or None
        The name of the policy in the service.
    reasons : mapping or None
        The lender's own sentences for rejections, by feature.

    Returns
    -------
    dict
        The specification.

    Raises
    ------
    InputError
        If no name is given, or the policy cannot be stored.
    """
    if name is None:
        raise InputError.because(
            "must be given for a fitted policy", "name", code="missing", hint="Such as name='loans'."
        )
    rule = policy.to_rule() if hasattr(policy, "to_rule") else policy
    return {
        "name": name,
        "objective": msgspec.to_builtins(rule.objective),
        "model": {
            "type": "logistic",
            "columns": msgspec.to_builtins(list(rule.columns)),
            "state": b64encode(rule.state()).decode(),
            **({"reasons": dict(reasons)} if reasons else {}),
        },
        "constraints": {"exploration_floor": rule.explore} if rule.explore else {},
    }
