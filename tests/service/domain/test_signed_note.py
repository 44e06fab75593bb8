"""Signed checkpoints: keys, notes and everything that is not one."""

from __future__ import annotations

import base64
from hashlib import sha256

import pytest

from lenience.core.errors import InputError
from lenience.service.domain.signed_note import (
    Checkpoint,
    InvalidNoteError,
    PublicKey,
    SigningKey,
    signers,
    split_note,
    verify_note,
)

KEY, WITNESS = SigningKey.create("test-log"), SigningKey.create("witness")
CHECKPOINT = Checkpoint("test-log", 12, b"\1" * 32, "2026-01-01T00:00:00Z")
NOTE = KEY.sign(CHECKPOINT.text)
ROOT = base64.b64encode(b"\1" * 32).decode()


def encoded(kind: bytes, raw: bytes, name: str = "test-log") -> str:
    """A key whose identity fits to its other parts, whatever they are."""
    identity = sha256(name.encode() + b"\n\x01" + raw).digest()[:4].hex()
    return f"{name}+{identity}+{base64.b64encode(kind + raw).decode()}"


def nameless(_: str) -> str:
    """Name no case by its text, which has a random key: all processes must find tests with the same names."""
    return "case"


def test_a_key_has_the_form_of_the_specification() -> None:
    raw = KEY.public.raw
    assert len(raw) == 32
    assert KEY.public.text == encoded(b"\x01", raw)
    assert PublicKey.read(f" {KEY.public.text}\n") == KEY.public
    assert SigningKey.read(f"{KEY.text}\n") == KEY
    assert KEY.text.startswith("PRIVATE+KEY+test-log+")
    assert SigningKey.create().name.startswith("lenience-")
    assert SigningKey.create().seed != SigningKey.create().seed
    assert base64.b64encode(KEY.seed).decode() not in repr(KEY)
    assert repr(KEY.seed) not in repr(KEY)


def test_a_key_with_a_plus_in_its_last_part() -> None:
    # base64 uses the plus that also separates the parts.
    seed = (b"\xef\xbe\xfb" * 11)[:32]
    key = SigningKey("x", seed)
    assert key.text.count("+") > 4
    assert SigningKey.read(key.text) == key
    public = PublicKey("x", seed)
    assert public.text.count("+") > 2
    assert PublicKey.read(public.text) == public


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a+b",
        KEY.public.text[:-4],
        KEY.public.text.replace("test-log", "rest-log"),
        encoded(b"\x02", KEY.public.raw),  # another kind of key
        encoded(b"\x01", KEY.public.raw + b"\0"),
        encoded(b"\x01", KEY.public.raw[:-1]),
        encoded(b"\x01", KEY.public.raw, name="a name"),
        encoded(b"\x01", KEY.public.raw, name=""),
        KEY.public.text + "*",  # a character that base64 does not have
    ],
    ids=nameless,
)
def test_what_is_not_a_public_key(text: str) -> None:
    with pytest.raises(InputError):
        PublicKey.read(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PRIVATE+KEY+x",
        KEY.public.text,
        f"x{KEY.text}",
        KEY.text.replace("test-log", "rest-log"),
        f"PRIVATE+KEY+{encoded(chr(2).encode(), KEY.seed)}",
        f"PRIVATE+KEY+{encoded(chr(1).encode(), KEY.seed[:-1])}",
        SigningKey("test log", KEY.seed).text,  # a name with a space
    ],
    ids=nameless,
)
def test_what_is_not_a_private_key(text: str) -> None:
    with pytest.raises(InputError) as problem:
        SigningKey.read(text)
    assert problem.value.code == "invalid_file"


def test_a_note_has_the_signatures_of_all_who_signed() -> None:
    text, (line,) = split_note(NOTE)
    assert (
        text
        == CHECKPOINT.text
        == f"test-log\n12\n{base64.b64encode(CHECKPOINT.root).decode()}\ntime {CHECKPOINT.time}\n"
    )
    assert f"{text}\n{line}\n" == NOTE
    name, signature = line.removeprefix("— ").split(" ")
    raw = base64.b64decode(signature)
    assert (name, raw[:4], len(raw)) == ("test-log", KEY.public.identity, 68)
    both = WITNESS.sign(NOTE)
    assert signers(both) == ["test-log", "witness"]
    assert WITNESS.sign(both) == both  # a second signature of the same key replaces the first
    assert verify_note(both, KEY.public) == verify_note(both, WITNESS.public) == CHECKPOINT
    assert verify_note(KEY.sign(Checkpoint("a", 0, b"\1" * 32, "t").text), KEY.public).size == 0


def signed(text: str) -> str:
    return KEY.sign(text)


@pytest.mark.parametrize(
    "note",
    [
        "",
        "no note",
        CHECKPOINT.text,
        f"{CHECKPOINT.text}\n",  # no signature
        NOTE.replace("12", "13"),
        NOTE.replace("— ", "- "),
        f"{NOTE}a line that is no signature\n",
        NOTE.replace("test-log", "best-log"),
        WITNESS.sign(CHECKPOINT.text),
        SigningKey.create("test-log").sign(CHECKPOINT.text),  # the same name, another key
        SigningKey("other", KEY.seed).sign(CHECKPOINT.text),  # the same key, another name
        signed(f"a\n1\n{ROOT}\nwhen t\n"),
        signed(f"a\n01\n{ROOT}\ntime t\n"),
        signed(f"a\n-1\n{ROOT}\ntime t\n"),
        signed(f"a\n1\n{ROOT[:-4]}\ntime t\n"),
        signed(f"a\n1\n{base64.b64encode(bytes(33)).decode()}\ntime t\n"),
        signed(f"a\n1\n{ROOT}\n"),
    ],
    ids=nameless,
)
def test_what_is_not_a_note_of_the_key(note: str) -> None:
    with pytest.raises(InvalidNoteError):
        verify_note(note, KEY.public)


@pytest.mark.parametrize("note", ["", "— a b", "text\n\n", "text\n\nno signature", CHECKPOINT.text], ids=nameless)
def test_a_note_has_a_text_and_signatures(note: str) -> None:
    with pytest.raises(InvalidNoteError):
        split_note(note)


def test_a_signature_under_the_name_of_the_log_must_be_its_own() -> None:
    forged = base64.b64encode(KEY.public.identity + bytes(64)).decode()
    note = f"{CHECKPOINT.text}\n— test-log {forged}\n"
    with pytest.raises(InvalidNoteError):
        verify_note(note, KEY.public)
    line = NOTE.splitlines()[-1]
    assert verify_note(f"{note}{line}\n", KEY.public) == CHECKPOINT
    assert not KEY.public.verifies(CHECKPOINT.text, bytes(64))


def test_the_text_of_a_checkpoint_ends_with_its_line() -> None:
    assert Checkpoint.read(CHECKPOINT.text) == CHECKPOINT
    assert Checkpoint.read(f"{CHECKPOINT.text}an extension\n") == CHECKPOINT
    for wrong in (CHECKPOINT.text[:-1], f"{CHECKPOINT.text}x", "a\n1\n", ""):
        with pytest.raises(InvalidNoteError):
            Checkpoint.read(wrong)
