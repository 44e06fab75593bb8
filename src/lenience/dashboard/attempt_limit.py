"""Limit the failed attempts to sign in from one address."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

ATTEMPTS = 10  # failed attempts from one address that are allowed in a window
WINDOW = 60.0  # seconds
ADDRESSES = 10_000  # addresses that are remembered


class AttemptLimit:
    """Counts attempts by address, in this process. A successful one clears the count.

    A key has 256 random bits, so nobody guesses one. The limit keeps an attacker from loading the database, which is
    asked for new keys at each attempt, and from flooding the log.

    Parameters
    ----------
    clock
        Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._attempts: OrderedDict[str, list[float]] = OrderedDict()

    def seconds_to_wait(self, address: str) -> float:
        """Return for how many seconds an address must wait before its next attempt, usually 0.

        Examples
        --------
        >>> limit = AttemptLimit(clock=lambda: 100.0)
        >>> for _ in range(10):
        ...     limit.record("192.0.2.7")
        >>> limit.seconds_to_wait("192.0.2.7"), limit.seconds_to_wait("192.0.2.8")
        (60.0, 0.0)
        """
        recent = self._recent(network_of(address))
        return recent[-ATTEMPTS] + WINDOW - self._clock() if len(recent) >= ATTEMPTS else 0.0

    def record(self, address: str) -> None:
        """Count an attempt. Do it before the attempt is checked, so that parallel ones count too."""
        network = network_of(address)
        self._attempts[network] = [*self._recent(network), self._clock()][-ATTEMPTS:]
        self._attempts.move_to_end(network)
        while len(self._attempts) > ADDRESSES:  # the one whose last attempt is oldest
            self._attempts.popitem(last=False)

    def clear(self, address: str) -> None:
        """Forget the attempts of an address, because the last one was successful."""
        self._attempts.pop(network_of(address), None)

    def _recent(self, network: str) -> list[float]:
        since = self._clock() - WINDOW
        return [at for at in self._attempts.get(network, ()) if at > since]


def network_of(address: str) -> str:
    """Return what counts as one address: in IPv6 a network of /64, which one subscriber has.

    Examples
    --------
    >>> network_of("192.0.2.7"), network_of("2001:db8:1:2:3:4:5:6"), network_of("")
    ('192.0.2.7', '2001:db8:1:2::/64', '')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((parsed.packed, 64), strict=False))
