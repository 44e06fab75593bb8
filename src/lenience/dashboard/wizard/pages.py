"""The steps to a new policy: source, columns, evidence, objective, back-test; with features: features, summary.

Each step has its own address. Its query holds the answers so far, from the hidden fields of the previous form, so the
user can go back and forth. Only an upload and the new policy are posted. A step with invalid answers is shown again
with a message.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from litestar import Request, Response, get, post
from litestar.datastructures import UploadFile
from litestar.exceptions import HTTPException

from lenience.core.data_origin import LONGEST
from lenience.core.errors import InputError
from lenience.dashboard.rendering import page, part, redirect
from lenience.dashboard.session import checked_form, visitor_of
from lenience.dashboard.wizard import past_file, uploads
from lenience.dashboard.wizard.answers import BANDS, Answers, FormError, read_answers, sentence
from lenience.dashboard.wizard.backtest_view import backtest_view
from lenience.dashboard.wizard.feature_plan import read_feature_specification
from lenience.dashboard.wizard.file_plan import first_view, read_file_specification, read_upload
from lenience.dashboard.wizard.hand import read_hand
from lenience.dashboard.wizard.objective_plan import read_specification, unsolved
from lenience.dashboard.wizard.plan import read_segments
from lenience.dashboard.wizard.upload_process import save_upload_apart
from lenience.dashboard.wizard.views import VIEWS, bands_view, fitted_view, meanings, starting_view
from lenience.files.value_guesses import Kind
from lenience.service.commands.four_eyes import four_eyes_required
from lenience.service.domain.answers import VersionAnswer
from lenience.service.domain.policy_file import MOST_BYTES, encode_policy_file
from lenience.service.domain.problems import BadRequest, NotFound
from lenience.service.domain.receipts import make_sender
from lenience.service.domain.specification import PolicySpecification
from lenience.service.http.background_solves import PATIENCE
from lenience.service.http.disconnection import unless_disconnected
from lenience.service.http.service import Service

Req = Request[Any, Any, Any]
UPLOAD = 64 * 1024 * 1024
SHEET_NAME = 31  # characters that Excel allows
ADMIN = {"role": "admin"}
STEPS = ("start", "columns", "beliefs", "objective", "check")
FEATURE_STEPS = ("start", "features", "objective", "check")  # of a policy that decides by features
BY_HAND_STEPS = ("start", "objective", "check")
STEPS_BY_SOURCE = {".parquet": STEPS, ".json": BY_HAND_STEPS, ".policy": ("start", "review")}
TITLES = dict(zip(STEPS, ("Source", "Columns", "Evidence", "Objective", "Back-test"), strict=True))
TITLES |= {"features": "Features", "review": "Review"}
MISSING = "Ibis and DuckDB are needed to read past decisions. Install them with pip install 'lenience[history]'"


@get("/new", include_in_schema=False, opt=ADMIN)
async def start(request: Req) -> Response[bytes]:
    """Show the choice of a source."""
    return _start(request)


@post("/new/file", include_in_schema=False, opt=ADMIN, request_max_body_size=UPLOAD, status_code=303)
async def upload(request: Req) -> Response[bytes]:
    """Store an uploaded file of past decisions for the next steps."""
    try:
        form = await checked_form(request)
    except HTTPException as error:
        if error.status_code != 413:
            raise
        message = f"The file is larger than {UPLOAD >> 20} MB. Leave columns out, or save it as Parquet"
        return _start(request, FormError("start", "file", message), 413)
    sent = form.get("file")
    if not isinstance(sent, UploadFile):
        return _start(request, FormError("start", "file", "Choose a file first"))
    if not past_file.ready():
        return _start(request, FormError("start", "file", sentence(MISSING)))
    try:
        token = await unless_disconnected(request, _store_upload(request, sent, str(form.get("sheet") or "")))
    except InputError as error:
        name = Path(sent.filename or "").name[:80]
        reason = sentence(f"{name or 'The file'} cannot be used: {error}")
        return _start(request, FormError("start", "file", reason, error.code))
    finally:
        await sent.close()
    return redirect(f"/new/columns?file={token}")


@post("/new/policy", include_in_schema=False, opt=ADMIN, request_max_body_size=UPLOAD, status_code=303)
async def upload_policy(request: Req) -> Response[bytes]:
    """Store an uploaded policy file, to be reviewed."""
    form = await checked_form(request)
    sent = form.get("file")
    if not isinstance(sent, UploadFile):
        return _start(request, FormError("start", "policy", "Choose a file first"))
    service: Service = request.app.state.service
    try:
        content = await sent.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            message = f"A policy file has at most {MOST_BYTES >> 20} MB"
            raise FormError("start", "policy", message, "too_large")
        name = Path(sent.filename or "policy.json").name[:80]
        specification = await service.ask(lambda: read_upload(content, name))
    except FormError as error:
        return _start(request, error)
    finally:
        await sent.close()
    token, path = uploads.new_place("policy")
    path.write_bytes(encode_policy_file(specification))
    return redirect(f"/new/review?file={token}")


@get("/new/review", include_in_schema=False, opt=ADMIN)
async def review(request: Req) -> Response[bytes]:
    """Show what the policy in a file would do."""
    return await _step(request, "review")


@post("/new/segments", include_in_schema=False, opt=ADMIN, status_code=303)
async def by_hand(request: Req) -> Response[bytes]:
    """Store segments listed by the user, without history."""
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
    """Show the meaning of the columns."""
    return await _step(request, "columns")


@get("/new/features", include_in_schema=False, opt=ADMIN)
async def features(request: Req) -> Response[bytes]:
    """Show which columns are features, for a policy that decides each applicant by its own."""
    return await _step(request, "features")


@get("/new/fitted", include_in_schema=False, opt=ADMIN)
async def fitted(request: Req) -> Response[bytes]:
    """Show what the model of a policy with features learns from the file."""
    answers = read_answers(request.query_params)
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    return part(request, "fitted.html", answers=answers, **await service.solve(lambda: fitted_view(path, answers)))


@get("/new/policy.json", include_in_schema=False, opt=ADMIN)
async def download(request: Req) -> Response[bytes]:
    """Return the policy as a file, as ``lenience fit --output`` writes it."""
    answers = read_answers(request.query_params)
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    try:
        made = await _specification(service, path, answers)
    except FormError as error:
        return await _show_again(request, answers, error)
    headers = {"Content-Disposition": 'attachment; filename="policy.json"'}
    return Response(encode_policy_file(made), media_type="application/json", headers=headers)


@get("/new/values", include_in_schema=False, opt=ADMIN)
async def values(request: Req) -> Response[bytes]:
    """Show the meaning of each value after another column is chosen."""
    answers = read_answers(request.query_params)
    kind: Kind = "accepted" if request.query_params.get("of") == "accepted" else "outcome"
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    # Answers about the values of another column do not apply here.
    fresh = msgspec.structs.replace(answers, **{f"{kind}_means": ()})
    return part(request, "meanings.html", kind=kind, **await service.ask(lambda: meanings(path, fresh, kind)))


@get("/new/bands", include_in_schema=False, opt=ADMIN)
async def bands(request: Req) -> Response[bytes]:
    """Show the bands of a column while the user types."""
    answers = read_answers(request.query_params)
    column = request.query_params.get("of", "")
    text = request.query_params.get(BANDS + column, "").strip()
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    return part(request, "bands.html", **await service.ask(lambda: bands_view(path, answers, column, text)))


@get("/new/beliefs", include_in_schema=False, opt=ADMIN)
async def beliefs(request: Req) -> Response[bytes]:
    """Show the evidence in the file and the estimates of a model."""
    return await _step(request, "beliefs")


@get("/new/objective", include_in_schema=False, opt=ADMIN)
async def objective(request: Req) -> Response[bytes]:
    """Show the objective and the constraints."""
    return await _step(request, "objective")


@get("/new/starting", include_in_schema=False, opt=ADMIN)
async def would_start(request: Req) -> Response[bytes]:
    """Show which segments would start while the user types the objective."""
    answers = read_answers(request.query_params)
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    return part(request, "starting.html", error=None, **await service.ask(lambda: starting_view(path, answers)))


@get("/new/check", include_in_schema=False, opt=ADMIN)
async def check(request: Req) -> Response[bytes]:
    """Show the back-test and the summary before the policy is created."""
    return await _step(request, "check")


@get("/new/past", include_in_schema=False, opt=ADMIN)
async def what_happened(request: Req) -> Response[bytes]:
    """Show the back-test: of the later half, or of all applicants without history."""
    answers = read_answers(request.query_params)
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    cold = request.query_params.get("cold") == "true"
    return part(request, "backtest.html", **await service.solve(lambda: backtest_view(path, answers, cold)))


@get("/new/first", include_in_schema=False, opt=ADMIN)
async def first_applicants(request: Req) -> Response[bytes]:
    """Show what the policy would do with its first applicants, in money if it knows any."""
    answers = read_answers(request.query_params)
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    try:
        specification = await _specification(service, path, answers)
    except FormError as error:
        return part(request, "first.html", first=None, trouble=sentence(str(error)))
    return part(request, "first.html", **await service.solve(lambda: first_view(specification)))


@post("/new/create", include_in_schema=False, opt=ADMIN, status_code=303)
async def create(request: Req) -> Response[bytes]:
    """Create the policy (or a new version of an existing one), as a draft or active."""
    form = await checked_form(request)
    answers = read_answers(form)
    state = str(form.get("state", "draft"))
    if state not in ("draft", "active"):
        raise BadRequest(f"state must be draft or active, not {state!r}")
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    try:
        specification = await _specification(service, path, answers)
    except FormError as error:
        return await _show_again(request, answers, error)
    visitor = visitor_of(request)
    assert visitor is not None
    who = make_sender(visitor.actor, None, "", None)
    activate = state == "active" and not four_eyes_required()
    solve = service.solve_in_background(specification, who, activate=activate)
    if not await solve.ended_within(PATIENCE):
        return redirect(f"/solves/{solve.id}")
    try:
        made = msgspec.json.decode(solve.task.result().body, type=VersionAnswer)
    except BadRequest as error:
        return await _show_again(request, answers, unsolved(error))
    message = f"Version {made.version} of {made.name} is {'live' if activate else 'saved as a draft'}."
    if state == "active" and not activate:
        message += " Somebody else must activate it."
    uploads.remove(answers.file)
    return redirect(f"/policies/{made.name}?version={made.version}", message, *made.warnings)


async def _specification(service: Service, path: Path, answers: Answers) -> PolicySpecification:
    """Return the policy that the answers describe."""
    if path.suffix == ".policy":
        return await service.ask(lambda: read_file_specification(path, answers))
    if answers.kind:
        return await service.solve(lambda: read_feature_specification(path, answers))
    return await service.ask(lambda: read_specification(answers, read_segments(path, answers)))


async def _step(request: Req, step: str) -> Response[bytes]:
    """Return the page of a step, or of the step whose answers are invalid, with a message."""
    answers = read_answers(request.query_params)
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    if (path.suffix == ".policy") != (step == "review"):
        raise NotFound("this step needs another kind of file. Start again at New policy")
    try:
        values = await service.ask(lambda: VIEWS[step](service, path, answers))
    except FormError as error:
        return await _show_again(request, answers, error)
    return _page(request, step, answers, path, None, values)


async def _show_again(request: Req, answers: Answers, error: FormError) -> Response[bytes]:
    """Show the step with the invalid answer again."""
    service: Service = request.app.state.service
    path = uploads.find(answers.file)
    step = "features" if answers.kind and error.step == "columns" else error.step
    if step == "beliefs":
        answers = msgspec.structs.replace(answers, model="")
    try:
        values = await service.ask(lambda: VIEWS[step](service, path, answers))
    except FormError as earlier:  # an earlier step is wrong too
        return await _show_again(request, answers, earlier)
    return _page(request, step, answers, path, error, values)


def _page(
    request: Req, step: str, answers: Answers, path: Path, error: FormError | None, values: dict[str, Any]
) -> Response[bytes]:
    status = 200 if error is None else 400
    if request.headers.get("hx-request") == "true" and step == "beliefs":
        return part(request, "beliefs.html", answers=answers, error=error, **values)
    by_features = path.suffix == ".parquet" and (bool(answers.kind) or step == "features")
    steps: tuple[str, ...] = FEATURE_STEPS if by_features else STEPS_BY_SOURCE[path.suffix]
    titles = TITLES if steps is STEPS else TITLES | {"check": "Summary"}
    template = "new_check_features.html" if by_features and step == "check" else f"new_{step}.html"
    return page(
        request,
        template,
        status,
        answers=answers,
        error=error,
        step=step,
        steps=steps,
        titles=titles,
        **values,
    )


def _start(
    request: Req, error: FormError | None = None, status: int = 400, given: dict[str, str] | None = None
) -> Response[bytes]:
    fields = {"segments": "", "expected": "50", "worth": "2", **(given or {})}
    shown = {"able": past_file.ready(), "missing": sentence(MISSING), "given": fields, "most": UPLOAD >> 20}
    step = {"answers": Answers(), "steps": STEPS, "titles": TITLES, "step": "start", "error": error}
    return page(request, "new_start.html", 200 if error is None else status, **step, **shown)


async def _store_upload(request: Req, sent: UploadFile, sheet: str) -> str:
    """Read an upload and return the token of the saved table. One at a time, so that their memory does not add up."""
    service: Service = request.app.state.service
    async with request.app.state.upload_turn:
        token, path = uploads.new_place("parquet")
        with tempfile.NamedTemporaryFile(dir=uploads.folder(), suffix=".part") as copy:
            await service.ask(lambda: shutil.copyfileobj(sent.file, copy, 1 << 20))
            copy.flush()
            name = Path(sent.filename or "").name.replace("\0", "")[:LONGEST]
            await save_upload_apart(Path(copy.name), path, sheet.strip()[:SHEET_NAME], name)
    return token


HANDLERS = [
    *(start, upload, by_hand, columns, features, values, bands, beliefs, objective, would_start, check),
    *(what_happened, fitted, download, create, upload_policy, review, first_applicants),
]
