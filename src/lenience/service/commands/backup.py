"""Back up a database while the service runs, and restore one. Both are verified by an audit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from sqlalchemy import Connection

from lenience.core.errors import InputError
from lenience.service.domain.problems import Damaged
from lenience.service.queries.audit import AuditReport, Finding, audit, audit_connection
from lenience.service.storage.copying import (
    check_new,
    copy_database,
    fill_server,
    finish_file,
    publish_file,
    remove_file,
    replace_file,
)
from lenience.service.storage.file_lock import FileLock
from lenience.service.storage.migrate import newest, refuse_others, revision_of
from lenience.service.storage.store import Store


@dataclass(frozen=True, slots=True)
class Backup:
    """A finished backup.

    Parameters
    ----------
    file : str
        The SQLite file.
    bytes : int
        Its size.
    schema : str
        The schema of the database.
    report : AuditReport or None
        The audit of the copy, or None if its schema is not this software's.
    damage : tuple of Finding
        Damage to the file, if it was not audited.
    """

    file: str
    bytes: int
    schema: str
    report: AuditReport | None
    damage: tuple[Finding, ...] = ()

    @property
    def findings(self) -> list[Finding]:
        """What is wrong with the copy, and so with the database."""
        return list(self.damage) if self.report is None else self.report.findings


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore.

    Parameters
    ----------
    report : AuditReport
        The audit of the backup if it was rejected, and otherwise of the restored database.
    done : bool
        Whether the database was replaced.
    previous : str or None
        The file to which the previous database was moved.
    """

    report: AuditReport
    done: bool
    previous: str | None = None


def back_up(database: str, output: str) -> Backup:
    """Copy a database into a new SQLite file, and audit the copy. Services may go on writing.

    Parameters
    ----------
    database : str
        The file or the address of the database.
    output : str
        The file to write. It must not exist.

    Returns
    -------
    Backup
        The size of the file, and the audit of it. The file is written even if the audit finds something.

    Raises
    ------
    InputError
        If the output exists, or the database does not.
    """
    final = Path(output)
    check_new(final)
    partial = final.with_name(f".{final.name}.partial")
    store = Store(database, reading=True)
    try:
        revision = _schema(store)
        copy_database(store, partial)
        report: AuditReport | None = None
        damage: tuple[Finding, ...] = ()
        if revision == newest():
            report = msgspec.structs.replace(_audit_file(partial), database=str(final))
        else:
            damage = _damage(partial)
        publish_file(partial, final)
    finally:
        store.close()
        remove_file(partial)
    return Backup(str(final), final.stat().st_size, revision, report, damage)


def _schema(store: Store) -> str:
    """Return the schema of a database, or raise InputError if the database is not a service's."""
    with store.read() as connection:
        revision = revision_of(connection)
        refuse_others(connection, revision)
    if revision is None:
        raise InputError.because("is empty", "database", label=f"the database {store.name}", code="schema_mismatch")
    return revision


def restore(database: str, backup: str) -> Restored:
    """Put a backup in the place of a database, after an audit of the backup and before one of the result.

    A SQLite database is moved aside, and stays. A PostgreSQL database must be empty. A backup with an older schema is
    upgraded first; the backup itself does not change.

    Parameters
    ----------
    database : str
        The file or the address of the database to replace. No service may have it open.
    backup : str
        A file that ``lenience backup`` wrote.

    Returns
    -------
    Restored
        The audit, and where the previous database is. If the backup fails its audit, nothing is replaced.

    Raises
    ------
    InputError
        If a service or another program has the database open, or a PostgreSQL database is not empty.
    """
    target, source = Store(database), Store(backup, reading=True)
    try:
        if not source.sqlite:
            raise InputError("input", backup, "a file that lenience backup wrote")
        if target.sqlite:
            return _restore_file(target.path, source)
        return _restore_server(target, source)
    finally:
        target.close()
        source.close()


def _restore_file(path: Path, source: Store) -> Restored:
    if path.exists() and path.samefile(source.path):
        raise InputError.because("must be another file than the backup", "database", value=str(path))
    existed = path.exists()
    try:
        lock = FileLock(path)
    except InputError as error:
        if error.code == "database_in_use":
            raise error.with_hint("Stop the service before you restore.") from None
        raise
    staged = path.with_name(f".{path.name}.restoring")
    try:
        report = _stage(source, staged)
        if not report.whole:
            return Restored(report, False)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        aside = path.with_name(f"{path.name}.before-restore-{stamp}")
        replaced = replace_file(path, staged, aside)
        after = _compare(report, _audit_file(path))
    finally:
        remove_file(staged)
        lock.release()
        if not existed and path.stat().st_size == 0:
            path.unlink()  # the lock has made it
    return Restored(after, True, str(aside) if replaced else None)


def _restore_server(target: Store, source: Store) -> Restored:
    staged = source.path.absolute().with_name(f".{source.path.name}.restoring")
    try:
        report = _stage(source, staged)
        if not report.whole:
            return Restored(report, False)
        reading = Store(str(staged), reading=True)

        def check(connection: Connection) -> None:
            written = audit_connection(connection, target.name)
            if not written.whole or written.digest != report.digest:
                raise Damaged("the rows in the database differ from the backup. Nothing was restored")

        try:
            fill_server(target, reading, check)
        finally:
            reading.close()
        return Restored(_compare(report, audit(target)), True)
    finally:
        remove_file(staged)


def _stage(source: Store, staged: Path) -> AuditReport:
    """Copy a backup, upgrade the copy to the newest schema, and audit it."""
    damage = tuple(source.find_damage(quick=False))
    if damage:
        findings = [Finding(one.where, one.what) for one in damage]
        return AuditReport(source.name, False, 0, 0, 0, findings, [], "")
    copy_database(source, staged)
    store = Store(str(staged))
    try:
        store.upgrade()
    finally:
        store.close()
    finish_file(staged)
    return msgspec.structs.replace(_audit_file(staged), database=source.name)


def _compare(before: AuditReport, after: AuditReport) -> AuditReport:
    if before.digest == after.digest:
        return after
    finding = Finding("the restored database", "its log differs from the log of the backup")
    return msgspec.structs.replace(after, whole=False, findings=[finding, *after.findings])


def _audit_file(path: Path) -> AuditReport:
    store = Store(str(path), reading=True)
    try:
        return audit(store)
    finally:
        store.close()


def _damage(path: Path) -> tuple[Finding, ...]:
    store = Store(str(path), reading=True)
    try:
        return tuple(Finding(one.where, one.what) for one in store.find_damage(quick=False))
    finally:
        store.close()
