"""API keys: created with roles and an expiry, shown once, stored as a hash. The log records creation and revocation.

A key is ``lk_<id>_<secret>``. The secret has 256 random bits, so it cannot be guessed and a plain SHA-256 of it is safe
to store. Checking it takes a microsecond, while the hash of a password must take a tenth of a second.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import threading
import time
from hashlib import sha256

import msgspec
from sqlalchemy import Connection, select, update

from lenience.core.errors import InputError
from lenience.core.settings import OPENID
from lenience.service.domain.clock import now
from lenience.service.domain.events import KeyCreated, KeyRevoked, readable_event
from lenience.service.domain.problems import Forbidden, Unauthenticated
from lenience.service.storage import schema
from lenience.service.storage.ended_sessions import ended_sessions
from lenience.service.storage.ledger import Ledger
from lenience.service.storage.policy_cache import PolicyCache
from lenience.service.storage.session_secrets import SessionSecrets
from lenience.service.storage.store import Store

ROLES = ("admin", "decide", "outcome", "read", "review")
FRESH = 0.2  # seconds for which an unknown key is not looked up again
LOCAL = "local"  # the actor while nobody needs to sign in


class ApiKey(msgspec.Struct, frozen=True):
    """A key, without its secret."""

    id: str
    label: str
    roles: tuple[str, ...]
    secret_hash: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def valid(self, at: int) -> bool:
        """Return whether the key is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)


def create_key(store: Store, label: str, roles: tuple[str, ...], expires_at: int | None, actor: str) -> tuple[str, str]:
    """Create a key and return its id and the whole key, which is not stored."""
    chosen = check_roles(roles)
    check_label(label)
    identity, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    digest = sha256(secret.encode()).hexdigest()
    with store.write() as connection:
        ledger = _system_ledger(store, connection)
        event = KeyCreated(
            at=ledger.now,
            actor=actor,
            id=identity,
            label=label,
            secret_hash=digest,
            roles=" ".join(chosen),
            expires_at=expires_at,
        )
        ledger.append(ledger.chains[schema.SYSTEM_CHAIN], event)
        row = (identity, label, digest, event.roles, ledger.now, expires_at, None)
        store.insert(connection, schema.api_key, [row])
        ledger.flush()
    return identity, f"lk_{identity}_{secret}"


def revoke_key(store: Store, identity: str, actor: str) -> None:
    """Revoke a key."""
    with store.write() as connection:
        ledger = _system_ledger(store, connection)
        table = schema.api_key
        row = connection.execute(select(table.c.revoked_at).where(table.c.id == identity)).one_or_none()
        if row is None:
            raise InputError.because(
                f"The key {identity!r} does not exist", "key", label="", value=identity, code="unknown_name"
            )
        if row.revoked_at is not None:
            raise InputError.because("is already revoked", "key", label=f"the key {identity!r}", value=identity)
        ledger.append(ledger.chains[schema.SYSTEM_CHAIN], KeyRevoked(at=ledger.now, actor=actor, id=identity))
        connection.execute(update(table).where(table.c.id == identity).values(revoked_at=ledger.now))
        ledger.flush()


def _system_ledger(store: Store, connection: Connection) -> Ledger:
    """Return a ledger with the system's chain locked. Its time is not before the newest event of the chain."""
    ledger = Ledger(store, connection, PolicyCache())
    ledger.lock([schema.SYSTEM_CHAIN])
    events, length = schema.event, ledger.chains[schema.SYSTEM_CHAIN].length
    newest = select(events.c.body).where(events.c.chain_id == schema.SYSTEM_CHAIN, events.c.seq == length)
    body = connection.execute(newest).scalar_one_or_none()
    last = None if body is None else readable_event(body)
    ledger.now = max(ledger.now, 0 if last is None else last.at)
    return ledger


def key_id(given: str) -> str:
    """Return the id of a key, given the id or the whole key. An error does not repeat what may be a secret.

    >>> key_id("3f9a1c0b2d4e"), key_id("lk_3f9a1c0b2d4e_secret")
    ('3f9a1c0b2d4e', '3f9a1c0b2d4e')
    >>> key_id("secret")
    Traceback (most recent call last):
        ...
    lenience.core.errors.InputError: the id of a key must be the 12 digits that lenience keys list shows
    """
    match = re.fullmatch(r"(?:lk_)?([0-9a-f]{12})(?:_.*)?", given, re.DOTALL)
    if match is None:
        raise InputError("key", allowed="the 12 digits that lenience keys list shows", label="the id of a key")
    return match[1]


def list_keys(store: Store) -> list[ApiKey]:
    """Return all keys, oldest first."""
    with store.read() as connection:
        rows = connection.execute(select(schema.api_key).order_by(schema.api_key.c.created_at)).all()
    return [
        ApiKey(
            id=row.id,
            label=row.label,
            roles=tuple(row.roles.split()),
            secret_hash=row.secret_hash,
            created_at=row.created_at,
            expires_at=row.expires_at,
            revoked_at=row.revoked_at,
        )
        for row in rows
    ]


def check_label(label: str) -> None:
    """Raise InputError if the label of a key is invalid."""
    if not 1 <= len(label) <= 100 or any(ord(letter) < 32 for letter in label):
        raise InputError("label", label, "a text of 1 to 100 letters")


def check_roles(roles: tuple[str, ...]) -> tuple[str, ...]:
    """Return the roles sorted, or raise InputError."""
    for role in roles:
        if role not in ROLES:
            raise InputError.unknown_name("role", role, ROLES)
    if not roles:
        raise InputError.because(
            f"must have at least one role of {', '.join(ROLES)}", "role", label="a key", code="missing"
        )
    return tuple(sorted(set(roles)))


class Keyring:
    """The keys of a running service.

    Once a key exists, every request needs a key or a session. The same holds from the start if the operator has set up
    sign-in with OpenID Connect.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._openid = bool(os.environ.get(OPENID))
        self._lock = threading.Lock()
        self._keys: dict[str, ApiKey] = {}
        self.ended: frozenset[str] = frozenset()  # sessions of the dashboard
        self.secrets = SessionSecrets(store.url)
        self._read_at = -FRESH

    @property
    def stale(self) -> bool:
        """Whether the list should be read again."""
        return time.monotonic() - self._read_at > FRESH

    def refresh(self) -> None:
        """Read the list of keys, the sessions that were signed out, and the secrets that sign sessions."""
        with self._lock:
            self._read()

    def refresh_if_stale(self) -> None:
        """Read the list of keys, unless another thread has just done so. Many unknown keys then cost one read."""
        with self._lock:
            if self.stale:
                self._read()

    def _read(self) -> None:
        self._keys = {key.id: key for key in list_keys(self._store)}
        self.ended = ended_sessions(self._store)
        self.secrets.refresh()
        self._read_at = time.monotonic()

    @property
    def closed(self) -> bool:
        """Whether requests need a key or a session.

        Revoked keys count, because revoking the last one must not allow open access.
        """
        return self._openid or bool(self._keys)

    def valid_key(self, identity: str) -> ApiKey | None:
        """Return the key with an id, or None if it is unknown, revoked or expired."""
        key = self._keys.get(identity)
        return key if key is not None and key.valid(now()) else None

    def admit(self, authorization: str | None, role: str) -> str:
        """Return the id of the key of a request if it has the role. The role admin includes all others."""
        if not self.closed:
            return LOCAL
        key = self.find(authorization)
        if role not in key.roles and "admin" not in key.roles:
            raise Forbidden(f"the key {key.id} does not have the role {role!r}", code="missing_role", allowed=role)
        return key.id

    def find(self, authorization: str | None) -> ApiKey:
        """Return the valid key of an Authorization header, or raise Unauthenticated."""
        if authorization is None:
            raise Unauthenticated("an API key is required. Send the header Authorization: Bearer lk_…")
        kind, _, given = authorization.partition(" ")
        parts = given.strip().split("_", 2)
        if kind.lower() != "bearer" or len(parts) != 3 or parts[0] != "lk":
            raise Unauthenticated("the Authorization header must be: Bearer lk_…")
        key = self._keys.get(parts[1])
        digest = sha256(parts[2].encode("utf-8", "replace")).hexdigest()
        if key is None or not hmac.compare_digest(digest, key.secret_hash) or not key.valid(now()):
            raise Unauthenticated("the key is invalid (unknown, revoked or expired)")
        return key
