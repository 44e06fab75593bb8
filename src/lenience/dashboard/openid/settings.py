"""The operator's settings for sign-in with OpenID Connect: a TOML file, and a client secret that is not in it.

The file says which provider to trust, where users reach the dashboard, and which values of a claim give which role. The
address of the dashboard is a setting, because a request's ``Host`` header must not choose where the provider sends a
code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from lenience.core.errors import InputError
from lenience.core.settings import OPENID, OPENID_SECRET
from lenience.service.commands.keys import check_roles
from lenience.service.http.auth import loopback
from lenience.service.storage.private_file import PrivateFile
from lenience.service.storage.session_secrets import SESSION_HOURS

CALLBACK = "/sign-in/oidc/callback"  # to which the provider sends users back, on the address of the dashboard

Text = Annotated[str, Meta(min_length=1, max_length=200)]
Groups = Annotated[list[Text], Meta(min_length=1, max_length=100)]


class OpenIdSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings of the file.

    Parameters
    ----------
    issuer : str
        The provider's issuer identifier, exactly as its discovery document states it.
    client_id : str
        The identifier that the provider has given to this service.
    address : str
        Where users reach the dashboard, such as ``https://decisions.example.org``.
    roles : dict
        For each role, the values of the claim that give it.
    role_claim : str
        The claim with a person's groups or roles. A path such as ``realm_access.roles`` leads into nested claims.
    client_secret_file : str, optional
        The file with the client secret. Without it, and without the environment variable, the client is public.
    scopes : list of str
        What to request from the provider; ``openid`` must be one of them.
    name : str
        What users call their account at the provider. It is the text of the button.
    session_hours : float
        Hours after which a person must sign in again, at most 12.
    """

    issuer: Text
    client_id: Text
    address: Text
    roles: dict[str, Groups]
    role_claim: Text = "groups"
    client_secret_file: Text | None = None
    scopes: tuple[Text, ...] = ("openid", "profile", "email")
    name: Text = "your company account"
    session_hours: Annotated[float, Meta(gt=0, le=SESSION_HOURS)] = 8.0

    @property
    def redirect_address(self) -> str:
        """Where the provider sends users after they have signed in there."""
        return self.address + CALLBACK

    @property
    def signed_out_address(self) -> str:
        """Where the provider sends users after they have signed out there."""
        return self.address + "/sign-in"

    def actor(self, subject: str) -> str:
        """Return the name of a person in the log. An issuer has no ``#``, so two people never share a name."""
        return f"{self.issuer}#{subject}"

    def is_actor(self, actor: str) -> bool:
        """Return whether an actor is a person of this provider."""
        return actor.startswith(f"{self.issuer}#")

    def groups_with_roles(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        """Return one of a person's groups for each role that the groups give.

        Examples
        --------
        >>> settings = OpenIdSettings(issuer="https://login.example.org", client_id="lenience",
        ...     address="https://decisions.example.org", roles={"admin": ["heads"], "read": ["risk", "audit"]})
        >>> settings.groups_with_roles({"groups": ["audit", "sales", "risk"]})
        ('risk',)
        >>> settings.roles_of(("risk",))
        ('read',)
        """
        given = self.given_groups(claims) or ()
        firsts = (next((group for group in groups if group in given), None) for groups in self.roles.values())
        return tuple(dict.fromkeys(group for group in firsts if group is not None))

    def given_groups(self, claims: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the values of the role claim, or None if the claims do not have it."""
        value: Any = claims.get(self.role_claim)
        if value is None:
            value = claims
            for step in self.role_claim.split("."):
                value = value.get(step) if isinstance(value, Mapping) else None
        if value is None:
            return None
        values = value if isinstance(value, list) else [value]
        return tuple(one for one in values if isinstance(one, str))

    def roles_of(self, groups: tuple[str, ...]) -> tuple[str, ...]:
        """Return the roles that groups give."""
        return tuple(role for role, giving in self.roles.items() if any(group in giving for group in groups))


def read_openid_settings(file: str | None = None) -> OpenIdSettings | None:
    """Return the settings of a file, by default of the one that the environment variable names; None without a file.

    Raises
    ------
    InputError
        If the file cannot be read, or a setting is missing, unknown or invalid.
    """
    given = file or os.environ.get(OPENID)
    if not given:
        return None
    path = Path(given)
    try:
        settings = msgspec.toml.decode(path.read_bytes(), type=OpenIdSettings)
    except OSError as error:
        raise InputError.unreadable("oidc", path, error) from None
    except msgspec.ValidationError as error:
        raise _invalid_setting(path, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError.unreadable("oidc", path, str(error), "invalid_file") from None
    place = f"file {str(path)!r}"
    for field, address in (("issuer", settings.issuer), ("address", settings.address)):
        if not secure_address(address):
            allowed = "an https address (or http on this machine) without query and fragment"
            raise InputError(field, address, allowed, place=place)
    if urlsplit(settings.address).path:
        raise InputError("address", settings.address, "an address without a path or final slash", place=place)
    if "openid" not in settings.scopes:
        raise InputError("scopes", list(settings.scopes), 'a list with "openid"', place=place)
    try:
        check_roles(tuple(settings.roles))
    except InputError as error:
        raise error.at(place) from None
    return settings


def read_client_secret(settings: OpenIdSettings) -> str | None:
    """Return the client secret from the environment or its file, or None for a public client."""
    given = os.environ.get(OPENID_SECRET)
    if given:
        return given
    if settings.client_secret_file is None:
        return None
    path = Path(settings.client_secret_file)
    file = PrivateFile(path, "the secret of the OpenID client", "replace the secret at the provider", "oidc")
    try:
        secret = file.read()[1].decode().strip()
    except UnicodeDecodeError:
        secret = ""
    if not secret:
        raise file.unusable("must contain the secret as text")
    return secret


def _invalid_setting(path: Path, message: str) -> InputError:
    """Return the error for a file with an unknown, missing or invalid setting, from msgspec's message.

    Examples
    --------
    >>> _invalid_setting(Path("oidc.toml"), "Object contains unknown field `clientid`").hint
    "Did you mean 'client_id'?"
    """
    place = f"file {str(path)!r}"
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL):
        return InputError.unknown_name("setting", unknown[1][:80], OpenIdSettings.__struct_fields__).at(place)
    if missing := re.fullmatch(r"Object missing required field `(.*)`", message):
        return InputError.because("must be given", missing[1], code="missing", place=place)
    return InputError.unreadable("oidc", path, message, "invalid_file")


def secure_address(address: str) -> bool:
    """Return whether nobody on the way can read or change what is sent to an address.

    Examples
    --------
    >>> [secure_address(one) for one in ("https://login.example.org/realms/bank", "http://127.0.0.1:9400")]
    [True, True]
    >>> [secure_address(one) for one in ("http://login.example.org", "https://a.example?x=1", "https://u:p@a.example")]
    [False, False, False]
    """
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    plain = parts.scheme == "http" and host is not None and loopback(host)
    whole = not (parts.query or parts.fragment or parts.username or "#" in address or "?" in address)
    return bool(host) and whole and (parts.scheme == "https" or plain)
