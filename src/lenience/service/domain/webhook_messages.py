"""Messages of webhooks: their body, their signature, and when they are sent again.

The layout is that of Standard Webhooks (https://www.standardwebhooks.com), so that receivers can use its libraries. The
signature is HMAC-SHA256 of ``id.timestamp.body`` with the webhook's secret, in the header ``webhook-signature`` as
``v1,<base64>``. The id is the same for all attempts, so that a receiver can ignore repetitions. The timestamp is that
of the attempt, so that an old message cannot be sent again by somebody else.

The secret of a webhook is derived from one secret of the service and the webhook's id. So no secret is stored in the
database, its backups or the log.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from hashlib import sha256
from random import Random

import msgspec

from lenience.service.domain.alerts import AlertChange
from lenience.service.domain.clock import SECOND, iso_time

PREFIX = "whsec_"
# Seconds until the next attempt, after each failed one. A message is given up after the last: 3 days in all.
BACKOFF = (5.0, 60.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
JITTER = 0.2  # relative, so that messages that failed together are not sent together again
TOLERANCE = 300  # seconds by which a timestamp may differ from the receiver's clock


def webhook_secret(master: bytes, identity: str) -> str:
    """Return the secret of a webhook.

    >>> webhook_secret(b"secret of the service", "3f9a1c0b2d4e")[:10]
    'whsec_A3Ha'
    """
    key = hmac.new(master, f"lenience webhook {identity}".encode(), sha256).digest()
    return PREFIX + b64encode(key).decode()


def sign_message(secret: str, identity: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message.

    Parameters
    ----------
    secret : str
        The secret of the webhook, which begins with ``whsec_``.
    identity : str
        The id of the message.
    timestamp : int
        The time of the attempt, in seconds since 1970.
    body : bytes
        The body.

    Examples
    --------
    The example of the standard:

    >>> secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    >>> sign_message(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = b64decode(secret.removeprefix(PREFIX))
    signed = f"{identity}.{timestamp}.".encode() + body
    return "v1," + b64encode(hmac.new(key, signed, sha256).digest()).decode()


def message_headers(secret: str, identity: str, at: int, body: bytes) -> dict[str, str]:
    """Return the headers of a message that is sent at a time in microseconds."""
    timestamp = at // SECOND
    return {
        "content-type": "application/json",
        "user-agent": "lenience",
        "webhook-id": identity,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign_message(secret, identity, timestamp, body),
    }


def alert_body(change: AlertChange, at: int) -> str:
    """Return the body of the message about an alert that begins or ends. It has no personal data.

    >>> from lenience.service.domain.alerts import AlertKey
    >>> print(alert_body(AlertChange(AlertKey("drift", "cards", "segments"), True, "Changed."), 0)[:60])
    {"type":"drift.began","timestamp":"1970-01-01T00:00:00.00000
    """
    key = change.key
    return msgspec.json.encode(
        {
            "type": f"{key.kind}.{'began' if change.began else 'ended'}",
            "timestamp": iso_time(at),
            "data": {
                "kind": key.kind,
                "state": "began" if change.began else "ended",
                "policy": key.policy or None,
                "subject": key.subject or None,
                "sentence": change.sentence if change.began else f"No longer: {change.sentence}",
            },
        }
    ).decode()


def trial_body(at: int) -> str:
    """Return the body of the message that tests a webhook."""
    data = {"sentence": "This is a test of the webhook."}
    return msgspec.json.encode({"type": "test", "timestamp": iso_time(at), "data": data}).decode()


def wait_before(attempt: int, identity: str) -> float | None:
    """Return the seconds until the next attempt after a failed one, or None if the message is given up.

    Parameters
    ----------
    attempt : int
        How many attempts have failed.
    identity : str
        The id of the message, which decides the jitter.

    Examples
    --------
    >>> 4.0 <= wait_before(1, "msg_1") <= 6.0, wait_before(11, "msg_1")
    (True, None)
    """
    if attempt > len(BACKOFF):
        return None
    jitter = Random(f"{identity} {attempt}").uniform(-JITTER, JITTER)
    return BACKOFF[attempt - 1] * (1.0 + jitter)
