"""ID tokens that must be rejected: wrong signatures, wrong claims, other people's tokens."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, Key, OctKey, RSAKey

from lenience.dashboard.openid.id_token import (
    LEEWAY,
    ExpectedToken,
    SignInRejected,
    UnknownKey,
    public_keys,
    verify_id_token,
)

NOW, BEGUN = 1_800_000_000.0, 1_800_000_000.0 - 100
KEY = RSAKey.generate_key(2048, {"kid": "first"})
OTHER = RSAKey.generate_key(2048, {"kid": "first"})  # another key under the same name
CURVE = ECKey.generate_key("P-256", {"kid": "curve"})
PUBLISHED = public_keys({"keys": [KEY.as_dict(private=False), CURVE.as_dict(private=False)]})
EXPECTED = ExpectedToken("https://login.example.org", "lenience", "a nonce", BEGUN, NOW)
CLAIMS: dict[str, Any] = {
    "iss": "https://login.example.org",
    "aud": "lenience",
    "sub": "1001",
    "nonce": "a nonce",
    "iat": NOW - 5,
    "exp": NOW + 300,
}


def token(key: Key = KEY, algorithm: str = "RS256", header: dict[str, Any] | None = None, **claims: Any) -> str:
    stated = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    named = {"alg": algorithm, "kid": key.kid, **(header or {})}
    return jwt.encode({name: value for name, value in named.items() if value}, stated, key, algorithms=[algorithm])


def unsigned(header: dict[str, Any], signature: bytes = b"") -> str:
    parts = (json.dumps(header).encode(), json.dumps(CLAIMS).encode(), signature)
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def with_password(password: bytes) -> str:
    """Sign with HS256 by hand, because no good library takes a public key as a password."""
    signed = unsigned({"alg": "HS256", "kid": "first"}).rpartition(".")[0]
    digest = hmac.new(password, signed.encode(), sha256).digest()
    return f"{signed}.{urlsafe_b64encode(digest).decode().rstrip('=')}"


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"aud": ["lenience"]},
        {"aud": ["lenience", "other"], "azp": "lenience"},
        {"exp": NOW - LEEWAY + 1},
        {"iat": NOW + LEEWAY},
        {"iat": BEGUN - LEEWAY},
        {"nbf": NOW},
    ],
)
def test_a_token_of_this_sign_in_is_accepted(claims: dict[str, Any]) -> None:
    assert verify_id_token(token(**claims), PUBLISHED, EXPECTED)["sub"] == "1001"


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://login.example.org/"},
        {"iss": None},
        {"aud": "other"},
        {"aud": None},
        {"aud": ["lenience", "other"]},
        {"aud": ["lenience", "other"], "azp": "other"},
        {"azp": "other"},
        {"exp": NOW - LEEWAY},
        {"exp": None},
        {"exp": "2099"},
        {"exp": True},
        {"iat": None},
        {"iat": NOW + LEEWAY + 1},
        {"iat": BEGUN - LEEWAY - 1},
        {"nbf": NOW + LEEWAY + 1},
        {"nonce": "another nonce"},
        {"nonce": None},
        {"nonce": ["a nonce"]},
        {"sub": None},
        {"sub": ""},
        {"sub": "x" * 256},
        {"sub": "ana\nberg"},
        {"sub": 1001},
    ],
    ids=str,
)
def test_a_token_with_other_claims_is_rejected(claims: dict[str, Any]) -> None:
    with pytest.raises(SignInRejected):
        verify_id_token(token(**claims), PUBLISHED, EXPECTED)


FORGED: dict[str, Callable[[], str]] = {
    "no signature": lambda: unsigned({"alg": "none"}),
    "no signature, with a key's name": lambda: unsigned({"alg": "none", "kid": "first"}),
    "the public key as a password": lambda: with_password(KEY.as_pem(private=False)),
    "another key under the same name": lambda: token(OTHER),
    "an algorithm that the provider does not use": lambda: token(KEY, "RS512"),
    "a key of another kind": lambda: token(KEY, header={"kid": "curve"}),
    "changed claims": lambda: token().replace(token().split(".")[1], token(sub="1002").split(".")[1]),
    "no key named, of several": lambda: token(header={"kid": None}),
    "a key inside the token": lambda: token(OTHER, header={"jwk": OTHER.as_dict(private=False)}),
    "not a token": lambda: "a.b",
    "empty": lambda: "",
    "a list": lambda: unsigned({"alg": ["RS256"], "kid": "first"}),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED.keys())
def test_a_forged_token_is_rejected(forged: Callable[[], str]) -> None:
    with pytest.raises(SignInRejected):
        verify_id_token(forged(), PUBLISHED, EXPECTED)


def test_no_setting_of_the_provider_allows_weak_algorithms() -> None:
    forged = unsigned({"alg": "none"})
    for algorithms in (["none"], ["HS256"], ["none", "HS256", "RS256"], []):
        with pytest.raises(SignInRejected):
            verify_id_token(forged, PUBLISHED, EXPECTED, algorithms)
    assert verify_id_token(token(CURVE, "ES256"), PUBLISHED, EXPECTED, ["HS256", "ES256"])


def test_an_unknown_key_is_no_rejection_yet() -> None:
    with pytest.raises(UnknownKey):
        verify_id_token(token(header={"kid": "second"}), PUBLISHED, EXPECTED)
    assert verify_id_token(token(header={"kid": None}), PUBLISHED[:1], EXPECTED)  # the only one needs no name


def test_only_public_keys_that_sign_are_used() -> None:
    secret = OctKey.generate_key(256, {"kid": "secret"}).as_dict(private=True)
    encrypting = RSAKey.generate_key(2048, {"kid": "other", "use": "enc"}).as_dict(private=False)
    unknown = {"kty": "AKP", "kid": "new"}
    given = [secret, encrypting, unknown, "text", {"kty": "RSA", "n": 5}, KEY.as_dict(private=False)]
    assert [key.kid for key in public_keys({"keys": given})] == ["first"]
    assert public_keys([]) == public_keys({"keys": None}) == []


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")  # on purpose
def test_a_short_key_is_not_used() -> None:
    assert public_keys({"keys": [RSAKey.generate_key(1024, {"kid": "short"}).as_dict(private=False)]}) == []
