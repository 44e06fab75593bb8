"""New policy, step by step: from what, which columns, what is believed, the objective, what would have happened.

Each step is an address of its own: the answers so far are in its query, put there by the hidden fields of the form
before, so that one can go back and forth. Only what changes something (an upload, the new policy) is posted. A step
whose answers cannot be used is shown again with a sentence.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from litestar import Request, Response, get, post
from litestar.datastructures import UploadFile
from litestar.exceptions import HTTPException

from lenience.core.errors import InputError
from lenience.dashboard.rendering import page, part, redirect
from lenience.dashboard.session import checked_form, visitor_of
from lenience.dashboard.wizard import past_file, upload_reader, uploads
from lenience.dashboard.wizard.answers import BANDS, Answers, FormError, read_answers, sentence
from lenience.dashboard.wizard.backtest_view import backtest_view
from lenience.dashboard.wizard.plan import read_hand, read_segments, read_specification, unsolved
from lenience.dashboard.wizard.views import VIEWS, bands_view, meanings, starting_view
from lenience.service.commands.lifecycle import ChangeState, CreateVersion
from lenience.service.domain.answers import VersionAnswer
from lenience.service.domain.problems import BadRequest
from lenience.service.domain.receipts import make_sender
from lenience.service.http.service import Service

Req = Request[Any, Any, Any]
UPLOAD = 64 * 1024 * 1024
ADMIN = {"role": "admin"}
STEPS = ("start", "columns", "beliefs", "objective", "check")
TITLES = dict(zip(STEPS, ("From what", "Columns", "Beliefs", "Objective", "What would have happened"), strict=True))
MISSING = "a history is read with Ibis and DuckDB, which are not installed: pip install 'lenience[history]'"


@get("/new", include_in_schema=False, opt=ADMIN)
async def start(request: Req) -> Response[bytes]:
    """Choose from what to begin."""
    return _start(request)


@post("/new/file", include_in_schema=False, opt=ADMIN, request_max_body_size=UPLOAD, status_code=303)
async def upload(request: Req) -> Response[bytes]:
    """Take a file of past decisions in, and keep it for the next steps."""
    try:
        form = await checked_form(request)
    except HTTPException as error:
        if error.status_code != 413:
            raise
        said = f"The file is larger than {UPLOAD >> 20} MB: leave columns out, or save it as Parquet"
        return _start(request, FormError("start", "file", said), 413)
    sent = form.get("file")
    if not isinstance(sent, UploadFile):
        return _start(request, FormError("start", "file", "Choose a file first"))
    if not past_file.ready():
        return _start(request, FormError("start", "file", sentence(MISSING)))
    service: Service = request.app.state.service
    try:
        token = await service.ask(partial(_keep, sent))
    except InputError as error:
        name = Path(sent.filename or "").name[:80]
        reason = sentence(f"{name or 'The file'} cannot be used: {error}")
        return _start(request, FormError("start", "file", reason, error.code))
    finally:
        await sent.close()
    return redirect(f"/new/columns?file={token}")


@post("/new/segments", include_in_schema=False, opt=ADMIN, status_code=303)
async def by_hand(request: Req) -> Response[bytes]:
    """Segments named by hand, without a history."""
    form = await checked_form(request)
    given = {name: str(form.get(name, "")) for name in ("segments", "expected", "worth")}
    try:
        hand = read_hand(given["segments"], given["expected"], given["worth"])
    except FormError as error:
        return _start(request, error, given=given)
    token, path = uploads.new_place("json")
    path.write_bytes(msgspec.json.encode(hand))
    return redirect(f"/new/objective?file={token}")


@get("/new/columns", include_in_schema=False, opt=ADMIN)
async def columns(request: Req) -> Response[bytes]:
    """Say what the columns mean."""
    return await _step(request, "columns")


@get("/new/values", include_in_schema=False, opt=ADMIN)
async def values(request: Req) -> Response[bytes]:
    """What each value of a column means, when another column is chosen."""
    answers = read_answers(request.query_params)
    kind = "accepted" if request.query_params.get("of") == "accepted" else "outcome"
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    # What was said of another column's values does not count here.
    fresh = msgspec.structs.replace(answers, **{f"{kind}_means": ()})
    return part(request, "meanings.html", kind=kind, **await service.ask(lambda: meanings(path, fresh, kind)))


@get("/new/bands", include_in_schema=False, opt=ADMIN)
async def bands(request: Req) -> Response[bytes]:
    """The bands of a column, as they are being chosen."""
    answers = read_answers(request.query_params)
    column = request.query_params.get("of", "")
    text = request.query_params.get(BANDS + column, "").strip()
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    return part(request, "bands.html", **await service.ask(lambda: bands_view(path, answers, column, text)))


@get("/new/beliefs", include_in_schema=False, opt=ADMIN)
async def beliefs(request: Req) -> Response[bytes]:
    """What the file says, and what a model makes of it."""
    return await _step(request, "beliefs")


@get("/new/objective", include_in_schema=False, opt=ADMIN)
async def objective(request: Req) -> Response[bytes]:
    """Say what is to be maximised, and within what limits."""
    return await _step(request, "objective")


@get("/new/starting", include_in_schema=False, opt=ADMIN)
async def would_start(request: Req) -> Response[bytes]:
    """Which segments would start, as the objective is being typed."""
    answers = read_answers(request.query_params)
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    return part(request, "starting.html", error=None, **await service.ask(lambda: starting_view(path, answers)))


@get("/new/check", include_in_schema=False, opt=ADMIN)
async def check(request: Req) -> Response[bytes]:
    """All together, before the policy is made."""
    return await _step(request, "check")


@get("/new/past", include_in_schema=False, opt=ADMIN)
async def what_happened(request: Req) -> Response[bytes]:
    """The past applicants decided again: those of the later half, or all of them by a rule that begins with nothing."""
    answers = read_answers(request.query_params)
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    cold = request.query_params.get("cold") == "true"
    return part(request, "backtest.html", **await service.solve(lambda: backtest_view(path, answers, cold)))


@post("/new/create", include_in_schema=False, opt=ADMIN, status_code=303)
async def create(request: Req) -> Response[bytes]:
    """Make the policy (or the next version of one that exists), as a draft or active at once."""
    form = await checked_form(request)
    answers = read_answers(form)
    state = str(form.get("state", "draft"))
    if state not in ("draft", "active"):
        raise BadRequest(f"state must be draft or active, not {state!r}")
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    try:
        specification = await service.ask(lambda: read_specification(answers, read_segments(path, answers)))
    except FormError as error:
        return await _again(request, answers, error)
    try:
        solved = await service.solve_version(specification)
    except BadRequest as error:
        return await _again(request, answers, unsolved(error))
    visitor = visitor_of(request)
    assert visitor is not None
    who = make_sender(visitor.actor, None, "", None)
    made = msgspec.json.decode((await service.perform(CreateVersion(who, solved))).body, type=VersionAnswer)
    said = f"Version {made.version} of {made.name} is made, as a draft."
    if state == "active":
        await service.perform(ChangeState(who, made.name, "active", made.version))
        said = f"Version {made.version} of {made.name} is made and rules from now on."
    uploads.remove(answers.file)
    return redirect(f"/policies/{made.name}?version={made.version}", said, *made.warnings)


async def _step(request: Req, step: str) -> Response[bytes]:
    """A step's page; the step whose answers cannot be used instead, with a sentence."""
    answers = read_answers(request.query_params)
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    try:
        found = await service.ask(lambda: VIEWS[step](service, path, answers))
    except FormError as error:
        return await _again(request, answers, error)
    return _page(request, step, answers, path, None, found)


async def _again(request: Req, answers: Answers, error: FormError) -> Response[bytes]:
    """The step in which something is wrong, shown again."""
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    step = error.step
    if step == "beliefs":
        answers = msgspec.structs.replace(answers, model="")
    try:
        found = await service.ask(lambda: VIEWS[step](service, path, answers))
    except FormError as earlier:  # a step before it is wrong too
        return await _again(request, answers, earlier)
    return _page(request, step, answers, path, error, found)


def _page(
    request: Req, step: str, answers: Answers, path: Path, error: FormError | None, found: dict[str, Any]
) -> Response[bytes]:
    status = 200 if error is None else 400
    if request.headers.get("hx-request") == "true" and step == "beliefs":
        return part(request, "beliefs.html", answers=answers, error=error, **found)
    steps = STEPS if path.suffix == ".parquet" else ("start", "objective", "check")
    titles = TITLES if path.suffix == ".parquet" else TITLES | {"check": "Summary"}
    return page(
        request,
        f"new_{step}.html",
        status,
        answers=answers,
        error=error,
        step=step,
        steps=steps,
        titles=titles,
        **found,
    )


def _start(
    request: Req, error: FormError | None = None, status: int = 400, given: dict[str, str] | None = None
) -> Response[bytes]:
    asked = {"segments": "", "expected": "50", "worth": "2", **(given or {})}
    shown = {"able": past_file.ready(), "missing": sentence(MISSING), "given": asked, "most": UPLOAD >> 20}
    known = {"answers": Answers(), "steps": STEPS, "titles": TITLES, "step": "start", "error": error}
    return page(request, "new_start.html", 200 if error is None else status, **known, **shown)


def _keep(sent: UploadFile) -> str:
    token, path = uploads.new_place("parquet")
    with tempfile.NamedTemporaryFile(dir=uploads.folder(), suffix=".part") as copy:
        while chunk := sent.file.read(1 << 20):
            copy.write(chunk)
        copy.flush()
        try:
            upload_reader.save_upload(Path(copy.name), path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return token


HANDLERS = [
    *(start, upload, by_hand, columns, values, bands, beliefs, objective, would_start, check, what_happened, create),
]
