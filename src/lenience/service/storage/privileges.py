"""The privileges that the user of a PostgreSQL database needs, checked before they are used."""

from __future__ import annotations

from sqlalchemy import Connection, text

RIGHTS = {
    "alembic_version": "SELECT",
    "policy": "SELECT, INSERT",
    "version": "SELECT, INSERT, UPDATE",
    "solved": "SELECT, INSERT",
    "chain": "SELECT, INSERT, UPDATE",
    "event": "SELECT, INSERT",
    "decision": "SELECT, INSERT, UPDATE",
    "referral": "SELECT, INSERT",
    "personal": "SELECT, INSERT, DELETE",
    "monitored": "SELECT, INSERT, DELETE",
    "daily_total": "SELECT, INSERT, UPDATE",
    "outcome_day": "SELECT, INSERT, UPDATE",
    "monitored_total": "SELECT, INSERT, UPDATE, DELETE",
    "monitored_day": "SELECT, INSERT, UPDATE, DELETE",
    "model_state": "SELECT, INSERT, DELETE",
    "log_run": "SELECT, INSERT",
    "log_chain": "SELECT, INSERT, UPDATE",
    "log_tile": "SELECT, INSERT, UPDATE",
    "log_checkpoint": "SELECT, INSERT, DELETE",
    "idempotency": "SELECT, INSERT, DELETE",
    "api_key": "SELECT, INSERT, UPDATE",
    "signed_out": "SELECT, INSERT, DELETE",
    "audited": "SELECT, INSERT, UPDATE, DELETE",
    "person": "SELECT, INSERT, DELETE",
    "webhook": "SELECT, INSERT, DELETE",
    "webhook_delivery": "SELECT, INSERT, UPDATE, DELETE",
    "alert": "SELECT, INSERT, DELETE",
    "alert_check": "SELECT, INSERT, UPDATE",
}
NUMBERED = ("policy", "chain")  # whose rows take their number from a sequence


def missing_rights(connection: Connection) -> list[str]:
    """Return the missing privileges, such as DELETE on personal."""
    wanted = [(table, right) for table, rights in RIGHTS.items() for right in rights.split(", ")]
    columns = ", ".join(f"has_table_privilege('{table}', '{right}')" for table, right in wanted)
    held = connection.execute(text(f"SELECT {columns}")).one()
    missing = [f"{right} on {table}" for (table, right), has in zip(wanted, held, strict=True) if not has]
    for table in NUMBERED:
        sequence = connection.execute(text(f"SELECT pg_get_serial_sequence('{table}', 'id')")).scalar_one()
        allowed = text("SELECT has_sequence_privilege(:sequence, 'USAGE')")
        if sequence is not None and not connection.execute(allowed, {"sequence": sequence}).scalar_one():
            missing.append(f"USAGE on {sequence}")
    return missing
