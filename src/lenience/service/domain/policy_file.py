"""The policy file: one JSON document that lenience fit, the guided form, check, serve and export-sql read and write.

It is the specification of a version, as ``POST /v1/policies`` takes it. A policy with features holds everything that
its model has learnt. The file of ``FeaturePolicy.save`` is read too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from lenience.client.feature_policies import feature_policy_body
from lenience.core.errors import InputError
from lenience.policies.features.storing import FORMAT, from_specification
from lenience.service.domain.specification import PolicySpecification

MOST_BYTES = 32 * 1024 * 1024


def encode_policy_file(document: dict[str, Any] | PolicySpecification) -> bytes:
    """Return a specification as the text of a file."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def decode_policy_file(content: bytes, path: str) -> PolicySpecification:
    """Return the policy that a file holds.

    Parameters
    ----------
    content
        The bytes of the file.
    path
        Its name, for errors and for a policy that has no name.

    Raises
    ------
    InputError
        If it is no valid policy.
    """
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError.because(
            f"is not JSON: {error}", "file", label=path, value=path, code="invalid_file"
        ) from error
    if isinstance(document, dict) and document.get("format") == FORMAT:
        body = feature_policy_body(from_specification(document), policy_name(path))
        document = body | ({"origin": document["origin"]} if document.get("origin") else {})
    return checked_document(document, path)


def checked_document(document: Any, path: str) -> PolicySpecification:
    """Return a specification, checked."""
    try:
        specification = msgspec.convert(document, PolicySpecification)
        specification.problems()
    except msgspec.ValidationError as error:
        raise InputError.because(
            f"is not a policy file: {error}", "file", label=path, value=path, code="invalid_file"
        ) from error
    return specification


def policy_name(path: str) -> str:
    """Return the name of a policy from that of its file.

    >>> policy_name("out/My loans.json")
    'My-loans'
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(path).stem).strip("-._")[:64] or "policy"
