"""Signed checkpoints of the log: a short text that states its size and root, with Ed25519 signatures.

The format is the signed note of the C2SP specifications, which transparency logs and their witnesses share:

    lenience-1f3a…            the name of the log
    1205                      how many events it has
    qINS1GRFHWHwdkUeqLEoP4…   the root of its Merkle tree, base64
    time 2026-11-17T10:00:00Z

    — lenience-1f3a… Az3grl…   a signature; witnesses add their own

A key has a name. Its public form is ``name+id+base64``, and the id (four bytes of a hash) says which key made a
signature. ``cryptography`` is imported when something is signed or verified.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from lenience.core.errors import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ED25519 = b"\x01"
NAME = re.compile(r"[^\s+]+")
PUBLIC = "a public key such as 'lenience-1f3a+0a1b2c3d+Ae…', as lenience keys log-key prints it"
PRIVATE = "PRIVATE+KEY"


class InvalidNoteError(ValueError):
    """A text that is not a signed checkpoint, or not signed by the right key."""


@dataclass(frozen=True)
class PublicKey:
    """A key that verifies signatures."""

    name: str
    raw: bytes

    @classmethod
    def read(cls, text: str) -> PublicKey:
        """Read the public form of a key. Raise InputError if it is not one.

        >>> PublicKey.read(SigningKey.create("mine").public.text).name
        'mine'
        """
        parts = text.strip().split("+", 2)
        raw = _decode(parts[2]) if len(parts) == 3 else b""
        if len(raw) != 33 or raw[:1] != ED25519 or not NAME.fullmatch(parts[0]):
            raise InputError("key", text, PUBLIC)
        key = cls(parts[0], raw[1:])
        if key.identity.hex() != parts[1]:
            raise InputError("key", text, PUBLIC, hint="A character of it is wrong.")
        return key

    @property
    def identity(self) -> bytes:
        """The four bytes that say which key made a signature."""
        return sha256(self.name.encode() + b"\n" + ED25519 + self.raw).digest()[:4]

    @property
    def text(self) -> str:
        """The public form."""
        return f"{self.name}+{self.identity.hex()}+{base64.b64encode(ED25519 + self.raw).decode()}"

    def verifies(self, text: str, signature: bytes) -> bool:
        """Return whether the signature of a text is valid."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, text.encode())
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class SigningKey:
    """A key that signs. Its seed must not be in the database."""

    name: str
    seed: bytes = field(repr=False)

    @classmethod
    def create(cls, name: str | None = None) -> SigningKey:
        """Return a new random key."""
        return cls(name or f"lenience-{secrets.token_hex(4)}", secrets.token_bytes(32))

    @classmethod
    def read(cls, text: str) -> SigningKey:
        """Read the private form of a key. Raise InputError if it is not one."""
        start, _, rest = text.strip().partition(f"{PRIVATE}+")
        parts = rest.split("+", 2)
        raw = _decode(parts[2]) if not start and len(parts) == 3 else b""
        if len(raw) != 33 or raw[:1] != ED25519 or not NAME.fullmatch(parts[0]):
            raise InputError("log key", allowed=f"a private key that starts with {PRIVATE}", code="invalid_file")
        key = cls(parts[0], raw[1:])
        if key.public.identity.hex() != parts[1]:
            raise InputError("log key", allowed="a private key whose parts fit together", code="invalid_file")
        return key

    @property
    def text(self) -> str:
        """The private form."""
        public = self.public
        return f"{PRIVATE}+{self.name}+{public.identity.hex()}+{base64.b64encode(ED25519 + self.seed).decode()}"

    @property
    def public(self) -> PublicKey:
        """The key that verifies."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        raw = self._key().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return PublicKey(self.name, raw)

    def sign(self, note: str) -> str:
        """Return a note with a signature of this key added. The note may have signatures already."""
        text, signatures = split_note(note) if "\n\n" in note else (note, [])
        own = self.public.identity + self._key().sign(text.encode())
        kept = [line for line in signatures if not line.startswith(f"— {self.name} ")]
        return "".join(
            [text, "\n", *(f"{line}\n" for line in [*kept, f"— {self.name} {base64.b64encode(own).decode()}"])]
        )

    def _key(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.seed)


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint states: the log had ``size`` events with this root at a time."""

    origin: str
    size: int
    root: bytes
    time: str

    @property
    def text(self) -> str:
        """The text that is signed."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\ntime {self.time}\n"

    @classmethod
    def read(cls, text: str) -> Checkpoint:
        """Read the text of a checkpoint. Raise InvalidNoteError if it is not one."""
        lines = text.split("\n")
        if len(lines) < 5 or lines[-1] or not lines[3].startswith("time ") or not re.fullmatch(r"0|[1-9]\d*", lines[1]):
            raise InvalidNoteError("it is not the checkpoint of a log")
        root = _decode(lines[2])
        if len(root) != 32:
            raise InvalidNoteError("its root is not a SHA-256 hash")
        return cls(lines[0], int(lines[1]), root, lines[3].removeprefix("time "))


def verify_note(note: str, key: PublicKey) -> Checkpoint:
    """Return the checkpoint of a signed note, or raise InvalidNoteError if the key has not signed exactly this text."""
    text, lines = split_note(note)
    checkpoint = Checkpoint.read(text)
    for line in lines:
        name, _, signature = line.removeprefix("— ").partition(" ")
        raw = _decode(signature)
        if name == key.name and raw[:4] == key.identity and key.verifies(text, raw[4:]):
            return checkpoint
    raise InvalidNoteError(f"the key {key.name!r} has not signed it")


def signers(note: str) -> list[str]:
    """Return the names of the keys that state to have signed a note."""
    return [line.removeprefix("— ").partition(" ")[0] for line in split_note(note)[1]]


def split_note(note: str) -> tuple[str, list[str]]:
    """Return the text of a note and the lines of its signatures, or raise InvalidNoteError."""
    text, separator, signatures = note.rpartition("\n\n")
    lines = signatures.splitlines()
    if not separator or not lines or not all(line.startswith("— ") for line in lines):
        raise InvalidNoteError("it is not a signed note")
    return text + "\n", lines


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
