"""lenience document: write the documentation pack of a policy, for model-risk reviews."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lenience.cli.keys import opened
from lenience.cli.options import FILE, bold, console, json_option, print_json
from lenience.cli.progress import announcing
from lenience.cli.serve import database_option, require_service
from lenience.core.errors import InputError
from lenience.core.settings import KEY

if TYPE_CHECKING:
    from lenience.dashboard.documentation.facts import PackFacts
    from lenience.service.storage.store import Store


@click.command(short_help="Write the documentation pack of a policy: purpose, data, validation, limits, change log.")
@click.argument("policy")
@database_option
@click.option("--url", help="The address of a running service, instead of --database.")
@click.option("--key", envvar=KEY, show_envvar=True, help="An API key with the role read; with --url.")
@click.option("--version", type=int, help="The version; by default the active one, or else the newest.")
@click.option("--data", type=FILE, help="A file of past decisions on which to back-test the version.")
@click.option("--audit/--no-audit", default=True, show_default=True, help="Audit the log first; with --database.")
@click.option("--output", type=FILE, required=True, help="The HTML page to write.")
@click.option("--docx", type=FILE, help="A Word file to write as well.")
@json_option
def document(
    policy: str,
    database: str,
    url: str | None,
    key: str | None,
    version: int | None,
    data: str | None,
    audit: bool,
    output: str,
    docx: str | None,
    as_json: bool,
) -> None:
    """Write the documentation pack of POLICY: a name in a service's database, or a policy file.

    The pack has purpose, data, method, validation, limitations, fairness, monitoring plan and change log, with figures.
    For a policy file that no service uses yet, it says what is not available. --data adds a back-test: the file is read
    with the columns and words that the version records.

    \b
    Example:
      lenience document policy.json --data loans.csv --output pack.html
      lenience document loans --database decisions.db --output pack.html --docx pack.docx
      lenience document loans --url http://127.0.0.1:8000 --output pack.html
    """
    require_service()
    _check_paths(output, docx)
    if url is not None:
        number = _download(policy, url, key, version, data, output, docx)
    else:
        with announcing("Reading the records of the policy"), _opened(policy, database) as (store, name, served):
            facts = _facts(store, name, version, data, audit and served, served, policy if not served else database)
        number = facts.number
        _write(facts, output, docx)
    files = [path for path in (output, docx) if path is not None]
    if as_json:
        print_json({"policy": policy, "version": number, "files": files})
    else:
        console().print(bold("Written:"), f" {' and '.join(files)} for version {number}.", sep="")


def _check_paths(output: str, docx: str | None) -> None:
    """Raise InputError if a file cannot be written, before anything is computed."""
    for field, path in (("output", output), ("docx", docx)):
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise InputError(field, str(Path(path).parent), "in a folder that exists", code="missing_file")
    if docx is None:
        return
    try:
        import docx as _docx  # noqa: F401
        import matplotlib as _matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError.missing_package("Word files", "python-docx and matplotlib", "document") from error


@contextmanager
def _opened(policy: str, database: str) -> Iterator[tuple[Store, str, bool]]:
    """Open the database of a policy. For a policy file, make a database that has it as a draft."""
    if not policy.endswith(".json") and not Path(policy).is_file():
        with opened(database, "read") as store:
            yield store, policy, True
        return
    from lenience.cli.policy_file import install, read_policy_file
    from lenience.service.storage.store import Store

    specification = read_policy_file(policy)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(str(Path(folder) / "draft.db"), serving=True)
        try:
            store.upgrade()
            install(store, specification, activate=False)
            yield store, specification.name, False
        finally:
            store.close()


def _facts(
    store: Store, name: str, version: int | None, data: str | None, audit: bool, served: bool, source: str
) -> PackFacts:
    """Read the facts of the pack, with an audit and a back-test if they are wanted."""
    from lenience.dashboard.documentation.backtests import backtest_on_file
    from lenience.dashboard.documentation.facts import DatabaseReader, read_pack_facts
    from lenience.dashboard.read_models.audits import FinishedAudit
    from lenience.service.domain.clock import iso_time, now
    from lenience.service.domain.problems import NotFound
    from lenience.service.queries.audit import audit as run_audit

    reader = DatabaseReader(store)
    try:
        specification = reader.queries.policy(name, version).specification
    except NotFound as problem:
        known = [entry.name for entry in reader.queries.policies().policies]
        if problem.code == "unknown_version":
            raise InputError("version", version, f"a version of {name!r}", code="unknown_name") from None
        raise InputError.unknown_name("policy", name, known) from None
    finished = FinishedAudit(iso_time(now()), run_audit(store)) if audit else None
    tested = None if data is None else backtest_on_file(specification, Path(data))
    return read_pack_facts(
        reader, name, version, audit=finished, backtest=tested, served=served, source=Path(source).name
    )


def _write(facts: PackFacts, output: str, docx: str | None) -> None:
    from lenience.dashboard.documentation.pack import documentation_pack
    from lenience.reports.document_docx import document_docx
    from lenience.reports.document_html import document_html

    pack = documentation_pack(facts)
    _save("output", output, document_html(pack).encode())
    if docx is not None:
        _save("docx", docx, document_docx(pack))


def _download(
    policy: str, url: str, key: str | None, version: int | None, data: str | None, output: str, docx: str | None
) -> int:
    """Write the pack that a running service makes."""
    from lenience.client.client import Client, ServiceError

    if data is not None:
        raise InputError.because(
            "cannot be combined with --url", "data", value=data, hint="Use --database.", code="conflicting_fields"
        )
    with Client(url, key) as client:
        try:
            for field, path, kind in (("output", output, "html"), ("docx", docx, "docx")):
                if path is not None:
                    number, content = client.document(policy, version, kind)
                    _save(field, path, content)
        except ServiceError as error:
            raise click.ClickException(f"{error}.") from error
    return number


def _save(field: str, path: str, content: bytes) -> None:
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise InputError.unreadable(field, path, error) from error
