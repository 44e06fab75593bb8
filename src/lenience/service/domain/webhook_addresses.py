"""To which addresses webhooks may be sent.

A service inside a network can reach what its clients cannot. So a webhook may go to public addresses over https only,
unless the operator allows more: ``LENIENCE_WEBHOOK_ALLOW`` lists host names (``hooks.example.org``, ``.example.org``
for all below it) and networks (``10.1.2.0/24``), separated by commas. If it is set, webhooks go to these alone. Private
addresses and plain http are allowed for what it lists.

A name is resolved for every attempt, all its addresses are checked, and the connection goes to a checked address: a
name cannot point elsewhere between the check and the connection.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from lenience.core.errors import InputError
from lenience.core.settings import WEBHOOK_ALLOW

LONGEST = 2_000  # characters of an address
Resolve = Callable[[str, int], Sequence[str]]


class Target(NamedTuple):
    """Where a message goes: the checked address of the host, and the parts of the URL."""

    ip: str
    host: str
    port: int
    secure: bool
    path: str

    @property
    def url(self) -> str:
        """The URL with the checked address instead of the name."""
        shown = f"[{self.ip}]" if ":" in self.ip else self.ip
        return f"{'https' if self.secure else 'http'}://{shown}:{self.port}{self.path}"

    @property
    def host_header(self) -> str:
        """The name and port, as the receiver expects them."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == (443 if self.secure else 80) else f"{name}:{self.port}"


def resolve_name(host: str, port: int) -> list[str]:
    """Return the addresses of a name."""
    return [str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def read_allowed() -> list[str]:
    """Return the host names and networks that the operator allows; empty if the setting is not used."""
    entries = [part.strip().lower() for part in os.environ.get(WEBHOOK_ALLOW, "").split(",")]
    return [entry for entry in entries if entry]


def check_address(url: str, allowed: Sequence[str], resolve: Resolve = resolve_name) -> Target:
    """Return where a message to a URL goes, or raise InputError if it may not go there.

    Parameters
    ----------
    url : str
        The address of a webhook.
    allowed : sequence of str
        Host names and networks that the operator allows.
    resolve : callable
        Returns the addresses of a name.

    Raises
    ------
    InputError
        If the URL is invalid, does not resolve, or leads to an address that is not allowed.

    Examples
    --------
    >>> check_address("https://example.org/hook?a=1", [], lambda host, port: ["93.184.215.14"]).url
    'https://93.184.215.14:443/hook?a=1'
    >>> check_address("https://example.org/hook", [], lambda host, port: ["10.0.0.7"])
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: url must lead to a public address; example.org is 10.0.0.7. To ...
    """
    parts = _split(url)
    host = (parts.hostname or "").lower()
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    named = _listed(host, allowed)
    try:
        addresses = [str(ipaddress.ip_address(host))]
    except ValueError:
        try:
            addresses = list(resolve(host, port))
        except (OSError, UnicodeError) as error:
            raise InputError.because(
                f"must have a host that can be found: {host!r} has no address", "url", code="unknown_name"
            ) from error
    if not addresses:
        raise InputError.because(f"must have a host that can be found: {host!r} has no address", "url")
    for address in addresses:
        within = named or _listed(address, allowed)
        if allowed and not within:
            raise InputError.because(
                f"must be listed in {WEBHOOK_ALLOW}; {host!r} is not", "url", code="address_unusable"
            )
        if not within and not ipaddress.ip_address(address).is_global:
            raise InputError.because(
                f"must lead to a public address; {host} is {'private' if host == address else address}",
                "url",
                hint=f"To allow it, the operator lists the host or its network in {WEBHOOK_ALLOW}.",
                code="address_unusable",
            )
        if not within and not secure:
            raise InputError.because(
                "must begin with https://", "url", hint=f"{WEBHOOK_ALLOW} can allow http.", code="address_unusable"
            )
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(addresses[0], host, port, secure, path)


def _split(url: str) -> SplitResult:
    """Return the parts of a URL, or raise InputError. The message does not repeat it, because it may hold a secret."""
    allowed = "an address such as https://example.org/hook, of at most 2,000 characters"
    if len(url) > LONGEST or any(ord(letter) <= 32 or ord(letter) == 127 for letter in url):
        raise InputError("url", allowed=allowed)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InputError("url", allowed=allowed) from None
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
        raise InputError("url", allowed=allowed)
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise InputError.because("must not have a user name, a password or a fragment", "url")
    return parts


def _listed(host: str, allowed: Sequence[str]) -> bool:
    """Return whether a host name or an address is in the operator's list.

    >>> _listed("a.example.org", [".example.org"]), _listed("10.1.2.3", ["10.1.0.0/16"]), _listed("b.org", ["a.org"])
    (True, True, False)
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return any(host == entry or (entry.startswith(".") and host.endswith(entry)) for entry in allowed)
    for entry in allowed:
        try:
            if address in ipaddress.ip_network(entry, strict=False):
                return True
        except ValueError:
            continue  # a name
    return False
