"""A policy file in the form: what it would do, and the version that it becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from lenience.core.errors import InputError
from lenience.dashboard.read_models.policy_description import describe_objective, example_request
from lenience.dashboard.rendering import natural
from lenience.dashboard.wizard.answers import Answers, FormError, sentence
from lenience.dashboard.wizard.objective_plan import check_name
from lenience.service.domain.first_decisions import first_decisions
from lenience.service.domain.policy_file import decode_policy_file
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.specification import PolicySpecification

SHOWN = 100  # largest segments, whose rows the page shows


def read_upload(content: bytes, name: str) -> PolicySpecification:
    """Return the policy in an uploaded file, or raise FormError."""
    try:
        return decode_policy_file(content, name)
    except (InputError, BadRequest) as error:
        hint = "Upload a file that lenience fit --output or this form wrote"
        raise FormError("start", "policy", f"{str(error).removesuffix('.')}. {hint}", "invalid_file") from None


def read_file_specification(path: Path, answers: Answers) -> PolicySpecification:
    """Return the policy in a stored file, with the name that the person typed."""
    specification = read_upload(path.read_bytes(), "policy.json")
    if not answers.name or answers.name == specification.name:
        return specification
    check_name(answers.name, "review")
    return msgspec.structs.replace(specification, name=answers.name)


def review_view(path: Path, answers: Answers, versions: dict[str, int]) -> dict[str, Any]:
    """Return what the policy in a file will do, for a person to check."""
    specification = read_upload(path.read_bytes(), "policy.json")
    model = specification.feature_spec
    view: dict[str, Any] = {
        "specification": specification,
        "objective_rows": describe_objective(specification.objective),
        "number": versions.get(specification.name, 0) + 1,
        "columns": [] if model is None else [column.name for column in model.declared],
        "sent": example_request(specification),
    }
    if model is None:
        view["segments"] = len(specification.problems())
    return view


def first_view(specification: PolicySpecification) -> dict[str, Any]:
    """Return what a policy of segments does with its first applicants, or why that is not known."""
    try:
        first = first_decisions(specification)
    except InputError as error:
        return {"first": None, "trouble": sentence(str(error))}
    shown = sorted(sorted(first.segments, key=lambda one: -one.share)[:SHOWN], key=lambda one: natural(one.name))
    never = [one for one in shown if not one.start.starts]
    return {"first": first, "shown": shown, "never": never, "more": len(first.segments) - len(shown), "trouble": ""}
