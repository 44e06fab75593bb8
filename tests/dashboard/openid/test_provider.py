"""The provider as the service sees it: discovery, keys that are replaced, codes, and answers that make no sense."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from apart import awaited
from lenience.core.errors import InputError
from lenience.dashboard.openid import provider as module
from lenience.dashboard.openid.attempt import Attempt, new_attempt
from lenience.dashboard.openid.id_token import SignInRejected
from lenience.dashboard.openid.provider import Person, Provider, ProviderDown
from lenience.dashboard.openid.settings import OpenIdSettings, read_client_secret, read_openid_settings
from openid_providers import LyingProvider, settings_file

BACK = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def shared() -> Iterator[LyingProvider]:
    made = LyingProvider()
    yield made
    made.close()


@pytest.fixture
def there(shared: LyingProvider) -> LyingProvider:
    shared.honest()
    return shared


@pytest.fixture
def here(there: LyingProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Provider:
    return Provider(configured(monkeypatch, settings_file(tmp_path, there.issuer, 1)))


def configured(monkeypatch: pytest.MonkeyPatch, path: str) -> OpenIdSettings:
    monkeypatch.setenv("LENIENCE_OIDC", path)
    settings = read_openid_settings()
    assert settings is not None
    return settings


def attempt() -> Attempt:
    return new_attempt(b"secret", "/")


async def signed_in(here: Provider, there: LyingProvider, subject: str = "1001") -> Person:
    made = attempt()
    address = there.code_for(await here.authorization_address(made), subject)
    code = address.split("code=")[1].split("&")[0]
    return await here.redeem(code, made)


def test_a_code_becomes_a_person(here: Provider, there: LyingProvider) -> None:
    person = awaited(signed_in(here, there))
    assert person.actor == f"{there.issuer}#1001"
    assert person.label == "Anna Berg (anna@bank.example)"
    assert here.settings.roles_of(person.groups) == ("admin",)


def test_documents_are_fetched_once(here: Provider, there: LyingProvider) -> None:
    async def twice() -> None:
        for _ in range(2):
            await signed_in(here, there)

    awaited(twice())
    assert there.requests.count("/jwks") == there.requests.count("/.well-known/openid-configuration") == 1


def test_a_new_key_is_fetched_but_not_for_every_token(
    here: Provider, there: LyingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEYS_AGAIN", 0.0)

    async def after_rotation() -> None:
        await signed_in(here, there)
        there.rotate()
        assert (await signed_in(here, there)).actor.endswith("#1001")
        assert there.requests.count("/jwks") == 2
        monkeypatch.setattr(module, "KEYS_AGAIN", 60.0)
        there.rotate()
        for _ in range(3):  # the keys were fetched a moment ago
            with pytest.raises(SignInRejected):
                await signed_in(here, there)
        assert there.requests.count("/jwks") == 2

    awaited(after_rotation())


@pytest.mark.parametrize(
    "bend",
    [
        lambda claims: {**claims, "nonce": "another"},
        lambda claims: {**claims, "aud": "another"},
        lambda claims: {**claims, "iss": "https://evil.example"},
        lambda claims: {**claims, "exp": claims["iat"] - 3600},
    ],
    ids=["nonce", "audience", "issuer", "expired"],
)
def test_a_token_that_lies_signs_nobody_in(here: Provider, there: LyingProvider, bend: Callable[[Any], Any]) -> None:
    there.bend = bend
    with pytest.raises(SignInRejected):
        awaited(signed_in(here, there))


def test_a_code_needs_the_verifier_of_its_own_attempt_and_works_once(here: Provider, there: LyingProvider) -> None:
    async def stolen() -> None:
        mine, theirs = attempt(), attempt()
        code = there.code_for(await here.authorization_address(theirs)).split("code=")[1].split("&")[0]
        with pytest.raises(SignInRejected, match="invalid_grant"):
            await here.redeem(code, mine)
        with pytest.raises(SignInRejected, match="invalid_grant"):
            await here.redeem(code, theirs)

    awaited(stolen())


def test_groups_may_come_from_the_user_info(here: Provider, there: LyingProvider) -> None:
    there.bend = lambda claims: {name: value for name, value in claims.items() if name != "groups"}
    there.user_info = {"sub": "1001", "groups": ["auditors"], "name": "Somebody Else"}
    person = awaited(signed_in(here, there))
    assert here.settings.roles_of(person.groups) == ("read",)
    assert person.label.startswith("Anna Berg")  # what is signed comes first
    there.user_info = {"sub": "1002", "groups": ["risk-admins"]}
    with pytest.raises(SignInRejected):
        awaited(signed_in(here, there))


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://login.example.org/token"},
        {"jwks_uri": None},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
    ids=str,
)
def test_a_discovery_document_that_cannot_be_trusted_is_not_used(
    here: Provider, there: LyingProvider, changes: dict[str, Any]
) -> None:
    there.metadata = changes
    with pytest.raises(ProviderDown):
        awaited(here.authorization_address(attempt()))


def test_a_provider_that_is_down_is_not_asked_by_every_visitor(here: Provider, there: LyingProvider) -> None:
    there.status = 500

    async def visitors() -> None:
        for _ in range(3):
            with pytest.raises(ProviderDown):
                await here.metadata()
        assert await here.sign_out_address(None) is None

    awaited(visitors())
    assert len(there.requests) == 1


def test_no_redirect_of_the_provider_is_followed(here: Provider, there: LyingProvider) -> None:
    there.status = 302
    with pytest.raises(ProviderDown):
        awaited(here.metadata())
    assert "/elsewhere" not in there.requests


def test_known_documents_last_while_the_provider_is_down(
    here: Provider, there: LyingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def later() -> None:
        known = await here.metadata()
        monkeypatch.setattr(module, "FRESH", 0.0)
        there.status = 503
        assert await here.metadata() == known

    awaited(later())
    assert len(there.requests) == 2


def test_another_issuer_is_rejected(here: Provider, there: LyingProvider) -> None:
    async def responses() -> None:
        await here.check_issuer(None)
        await here.check_issuer(there.issuer)
        with pytest.raises(SignInRejected):
            await here.check_issuer("https://evil.example")

    awaited(responses())


def test_a_provider_that_promises_to_name_itself_must_do_so(here: Provider, there: LyingProvider) -> None:
    there.metadata = {"authorization_response_iss_parameter_supported": True}
    with pytest.raises(SignInRejected):
        awaited(here.check_issuer(None))


def test_the_secret_comes_from_the_environment_or_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = configured(monkeypatch, settings_file(tmp_path, "https://login.example.org", 1, secret="in a file"))
    assert read_client_secret(settings) == "in a file"
    (tmp_path / "client-secret").chmod(0o644)
    with pytest.raises(InputError) as refused:
        read_client_secret(settings)
    assert (refused.value.field, refused.value.code) == ("oidc", "unreadable_file")
    assert "in a file" not in str(refused.value)
    monkeypatch.setenv("LENIENCE_OIDC_CLIENT_SECRET", "in the environment")
    assert read_client_secret(settings) == "in the environment"
    monkeypatch.delenv("LENIENCE_OIDC_CLIENT_SECRET")
    assert read_client_secret(msgspec.structs.replace(settings, client_secret_file=None)) is None


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"issuer": "http://login.example.org"}, "issuer"),
        ({"issuer": "https://login.example.org?x=1"}, "issuer"),
        ({"address": "https://decisions.example.org/"}, "address"),
        ({"address": "decisions.example.org"}, "address"),
        ({"scopes": ["profile"]}, "scopes"),
        ({"session_hours": 13}, "oidc"),
        ({"clientid": "lenience"}, "setting"),
        ({"client_id": ""}, "oidc"),
    ],
    ids=str,
)
def test_invalid_settings_name_the_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InputError) as refused:
        configured(
            monkeypatch, settings_file(tmp_path, changes.pop("issuer", "https://login.example.org"), 1, **changes)
        )
    assert refused.value.field == field
    assert "oidc.toml" in str(refused.value)


def test_groups_in_nested_claims_and_claims_with_dots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = configured(
        monkeypatch, settings_file(tmp_path, "https://login.example.org", 1, role_claim="realm_access.roles")
    )
    nested = {"realm_access": {"roles": ["auditors", 7]}}
    assert settings.groups_with_roles(nested) == ("auditors",)
    assert settings.groups_with_roles({"realm_access.roles": "risk-admins"}) == ("risk-admins",)
    assert settings.given_groups({"realm_access": "auditors"}) is None
    assert settings.given_groups({"realm_access": {"roles": []}}) == ()
