"""The tables of the service's database, as of the newest migration.

``event`` is the source of truth: an append-only log in hash chains. There is one chain for each segment of a policy,
one for each policy and one for the system (policies and keys). Everything else is either content that an event commits
to by its digest (``version``, ``solved``, ``personal``, ``monitored``, ``model_state``, ``idempotency``, ``api_key``)
or a projection that can be recomputed from the log (the counts in ``chain``, ``decision``, and the totals in
``daily_total``, ``outcome_day``, ``monitored_total`` and ``monitored_day``). ``lenience audit`` checks every row of
them. An imported decision has the version 0, and its own date in its id and its row.

Attributes that are monitored for fairness have a chain of their own for each policy. The chains of segments, and with
them all decisions and draws, are therefore the same with and without them.
``audited`` holds the result of the last audit, ``signed_out`` the ended sessions and ``person`` the names of people who
signed in. They serve the dashboard and prove nothing. ``webhook`` is content of the log, ``alert``, ``alert_check`` and
``webhook_delivery`` are the state of alerts and of messages that are to be sent.

Each segment has its own chain because a decision locks its segment's row anyway (for the belief and the pending count).
The chain then needs no further lock, and processes that decide on different segments never wait for each other.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

SYSTEM_CHAIN = 1
PENDING, SUCCESS, FAILURE, EXPIRED, REJECTED = "pending", "success", "failure", "expired", "rejected"
WAITING, REPLACED = "waiting", "replaced"  # on the waiting list; decided again since
REFERRED, LAPSED = "referred", "lapsed"  # a person decides; nobody has decided in time
NEW_STATUS = {"accept": PENDING, "reject": REJECTED, "wait": WAITING, "refer": REFERRED}  # of a new decision

policy = Table(
    "policy",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
)

version = Table(
    "version",
    metadata,
    Column("policy_id", Integer, ForeignKey("policy.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("state", String(8), nullable=False),
    Column("specification", Text, nullable=False),
    Column("segments", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("percent", Double, nullable=True),  # of applicants that it decides, while it is rolled out
)

solved = Table(
    "solved",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("body", Text, nullable=False),
)

chain = Table(
    "chain",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("policy_id", Integer, ForeignKey("policy.id"), nullable=True),
    Column("segment", String(200), nullable=True),
    Column("revision", Integer, nullable=False, server_default="0"),
    Column("length", BigInteger, nullable=False, server_default="0"),
    Column("head", String(64), nullable=False),
    Column("arrivals", BigInteger, nullable=False, server_default="0"),
    Column("accepted", BigInteger, nullable=False, server_default="0"),
    Column("pending", BigInteger, nullable=False, server_default="0"),
    Column("successes", BigInteger, nullable=False, server_default="0"),
    Column("failures", BigInteger, nullable=False, server_default="0"),
    Column("at_risk", Double, nullable=False, server_default="0"),  # lost if all pending outcomes fail, in money
    Column("imported", BigInteger, nullable=False, server_default="0"),  # past decisions that were imported
    Column("open_loans", Text, nullable=True),  # as they were counted last, if they count according to their age
    Column("monitors", Integer, nullable=True),  # the policy whose monitored attributes the chain commits to
    Column("shadow_segments", Text, nullable=True),  # counts for versions by segments in shadow of one by features
    UniqueConstraint("policy_id", "segment", name="chain_of_segment"),
)
Index("chain_of_monitored", chain.c.monitors, unique=True)

event = Table(
    "event",
    metadata,
    Column("chain_id", Integer, ForeignKey("chain.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("body", Text, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("about", String(36), nullable=True),  # the decision that a later event changes
)
Index(
    "event_about", event.c.about, sqlite_where=event.c.about.is_not(None), postgresql_where=event.c.about.is_not(None)
)
# Overrides are few and read all at once. A query uses this partial index only if it has the same condition.
OVERRIDE = text("""substr(body, 1, 18) = '{"kind":"override"'""")
Index("event_override", event.c.chain_id, event.c.seq, sqlite_where=OVERRIDE, postgresql_where=OVERRIDE)

# Decisions of the policy and imported ones: their events state the counts before them.
STATES_COUNTS = text("""substr(body, 1, 18) IN ('{"kind":"decision"', '{"kind":"imported"')""")
LATER_EVENT = text("""substr(body, 1, 18) NOT IN ('{"kind":"decision"', '{"kind":"imported"')""")

decision = Table(
    "decision",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("chain_id", Integer, ForeignKey("chain.id"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("accepted", SmallInteger, nullable=False),
    Column("status", String(8), nullable=False),
    Column("amount", Double, nullable=True),  # at stake in the offer that was decided, if amounts differ
    Column("cost", Double, nullable=True),  # its break-even
    Column("source", Integer, nullable=True),  # the number of the import, if the decision was imported
    Column("reported", String(8), nullable=True),  # the interim status of a pending one: late or current
    Column("outcome_at", BigInteger, nullable=True),  # the outcome's own date, if the sender gave one
    Index("decision_of_chain", "chain_id", "id"),
    sqlite_with_rowid=False,
)
# Pending decisions, oldest first, for expiry. Other decisions are not in the index.
Index(
    "decision_pending",
    decision.c.chain_id,
    decision.c.id,
    sqlite_where=decision.c.status == PENDING,
    postgresql_where=decision.c.status == PENDING,
)

# Waiting decisions, longest first, for the waiting list.
Index(
    "decision_waiting",
    decision.c.chain_id,
    decision.c.id,
    sqlite_where=decision.c.status == WAITING,
    postgresql_where=decision.c.status == WAITING,
)

# Referred decisions, oldest first, for the queue.
Index(
    "decision_referred",
    decision.c.chain_id,
    decision.c.id,
    sqlite_where=decision.c.status == REFERRED,
    postgresql_where=decision.c.status == REFERRED,
)

referral = Table(  # decisions that were left to a person, as their events say; a row never changes
    "referral",
    metadata,
    Column("decision", String(36), primary_key=True),
    Column("chain_id", Integer, ForeignKey("chain.id"), nullable=False),
    Column("policy_id", Integer, ForeignKey("policy.id"), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("rule", String(16), nullable=False),
    Column("would", String(8), nullable=False),  # what the policy would have answered
    Column("worth", Double, nullable=False),  # of a review
    Index("referral_of_policy", "policy_id", "at"),
    sqlite_with_rowid=False,
)

personal = Table(
    "personal",
    metadata,
    Column("chain_id", Integer, primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("salt", String(32), nullable=False),
    Column("reference", String(200), nullable=True),
    Column("details", Text, nullable=True),
    sqlite_with_rowid=False,
)
Index(
    "personal_reference",
    personal.c.reference,
    sqlite_where=personal.c.reference.is_not(None),
    postgresql_where=personal.c.reference.is_not(None),
)

monitored = Table(  # one row for each attribute; a later event replaces all rows of a decision
    "monitored",
    metadata,
    Column("decision", String(36), primary_key=True),
    Column("name", String(40), primary_key=True),
    Column("value", String(64), nullable=False),
    Column("salt", String(32), nullable=False),  # the same for all attributes of a decision
    Column("chain_id", Integer, nullable=False),
    Index("monitored_of_chain", "chain_id", "name", "value"),
    sqlite_with_rowid=False,
)

# Totals that pages read instead of all decisions (daily_totals.py, monitored_totals.py).
daily_total = Table(
    "daily_total",
    metadata,
    Column("chain_id", Integer, primary_key=True, autoincrement=False),
    Column("day", Integer, primary_key=True, autoincrement=False),  # of the decision's own time, in days since 1970
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("status", String(8), primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("accepted", BigInteger, nullable=False),
    Column("amounts", BigInteger, nullable=False),  # decisions with an amount
    Column("amount", Double, nullable=False),  # the sum of their amounts at stake
    Column("loss", Double, nullable=False),  # the sum of what they lose if they fail
    sqlite_with_rowid=False,
)
outcome_day = Table(  # what arrived on a day, less what corrections took back (outcome_days.py)
    "outcome_day",
    metadata,
    Column("chain_id", Integer, primary_key=True, autoincrement=False),
    Column("day", Integer, primary_key=True, autoincrement=False),  # of the outcome's event, in days since 1970
    Column("number", BigInteger, nullable=False),
    Column("successes", BigInteger, nullable=False),
    Column("amounts", BigInteger, nullable=False),  # outcomes of decisions with an amount
    Column("gain", Double, nullable=False),  # of their successes
    Column("loss", Double, nullable=False),  # of their failures
    sqlite_with_rowid=False,
)
monitored_total = Table(
    "monitored_total",
    metadata,
    Column("chain_id", Integer, primary_key=True, autoincrement=False),  # of the segment
    Column("key", String(32), primary_key=True),  # of the attributes
    Column("status", String(8), primary_key=True),
    Column("attributes", Text, nullable=False),  # the values of all attributes, as JSON
    Column("number", BigInteger, nullable=False),
    Column("accepted", BigInteger, nullable=False),
    Column("amounts", BigInteger, nullable=False),
    Column("amount", Double, nullable=False),
    Column("amount_squares", Double, nullable=False),
    Column("loss", Double, nullable=False),
    Column("profit_squares", Double, nullable=False),
    sqlite_with_rowid=False,
)
monitored_day = Table(
    "monitored_day",
    metadata,
    Column("chain_id", Integer, primary_key=True, autoincrement=False),  # of the policy's monitored attributes
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("key", String(32), primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("accepted", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

model_state = Table(
    "model_state",
    metadata,
    Column("policy_id", Integer, ForeignKey("policy.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("seq", BigInteger, primary_key=True),  # the event of the policy's chain after which the state holds
    Column("kept", SmallInteger, nullable=False),  # 1 if the audit needs it; otherwise a later state replaces it
    Column("body", Text, nullable=False),  # as the log has its digest
    Column("revised", Text, nullable=True),  # with labels corrected that were learnt again since (relearning.py)
)

# The Merkle tree over the events of all chains (log_tree.py): the order of its leaves in runs of one chain, how much of
# each chain it has, its hashes in tiles of 256, and the signed checkpoints.
log_run = Table(
    "log_run",
    metadata,
    Column("start", BigInteger, primary_key=True, autoincrement=False),  # the index of the first leaf
    Column("chain_id", Integer, nullable=False),
    Column("first_seq", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Index("log_run_of_chain", "chain_id", "first_seq"),
)
log_chain = Table(
    "log_chain",
    metadata,
    Column("chain_id", Integer, primary_key=True, autoincrement=False),
    Column("length", BigInteger, nullable=False),
)
log_tile = Table(
    "log_tile",
    metadata,
    Column("level", SmallInteger, primary_key=True, autoincrement=False),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("hashes", LargeBinary, nullable=False),
)
log_checkpoint = Table(
    "log_checkpoint",
    metadata,
    Column("size", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("note", Text, nullable=False),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("request", String(64), nullable=False),
    Column("salt", String(32), nullable=False),
    Column("chain_id", Integer, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False, index=True),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("label", String(100), nullable=False),
    Column("secret_hash", String(64), nullable=False),
    Column("roles", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=True),
    Column("revoked_at", BigInteger, nullable=True),
)

audited = Table(
    "audited",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),  # one row
    Column("running_at", BigInteger, nullable=True),  # last heartbeat of a running audit
    Column("found", Text, nullable=True),  # the report of the last finished audit
)

signed_out = Table(
    "signed_out",
    metadata,
    Column("session", String(64), primary_key=True),  # its digest
    Column("until", BigInteger, nullable=False),  # when it would have expired
)

person = Table(
    "person",
    metadata,
    Column("actor", Text, primary_key=True),  # issuer and subject, as the log names the person
    Column("label", String(100), nullable=False),  # name and e-mail address
    Column("seen_at", BigInteger, nullable=False),  # the last sign-in
)

webhook = Table(
    "webhook",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("url", Text, nullable=False),  # the log has its digest
    Column("kinds", Text, nullable=False),  # of alerts, separated by spaces
    Column("created_at", BigInteger, nullable=False),
)

alert = Table(  # alerts that have begun and not ended
    "alert",
    metadata,
    Column("kind", String(32), primary_key=True),
    Column("policy", String(64), primary_key=True),
    Column("subject", String(200), primary_key=True),
    Column("began_at", BigInteger, nullable=False),
    Column("sentence", Text, nullable=False),
)

alert_check = Table(
    "alert_check",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),  # one row
    Column("at", BigInteger, nullable=False),  # when a process began the last check
    Column("readings", Text, nullable=False),  # what it found
)

webhook_delivery = Table(  # messages to send, and for a while those that were sent
    "webhook_delivery",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("webhook", String(16), nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", BigInteger, nullable=True),  # null when it was delivered or given up
    Column("delivered_at", BigInteger, nullable=True),
    Column("error", Text, nullable=True),  # of the last attempt
    Index("webhook_delivery_due", "next_at"),
)
