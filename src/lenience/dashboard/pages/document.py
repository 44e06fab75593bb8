"""The documentation pack of a policy: a download on the dashboard, and an endpoint of the API."""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from litestar import Request, Response, get
from litestar.params import Parameter

from lenience.dashboard.documentation.facts import read_pack_facts
from lenience.dashboard.documentation.pack import documentation_pack
from lenience.dashboard.read_models.audits import audit_status
from lenience.reports.document_docx import document_docx
from lenience.reports.document_html import document_html
from lenience.service.http.common import PolicyName
from lenience.service.http.common import Req as ApiRequest
from lenience.service.http.errors import documented
from lenience.service.http.service import Service

Req = Request[Any, Any, Any]
Format: TypeAlias = Literal["html", "docx"]
VersionNumber = Annotated[int | None, Parameter(ge=1, le=10**6, description="Which version")]
DocumentFormat = Annotated[Format, Parameter(description="html, or docx for Word")]
MEDIA = {
    "html": "text/html; charset=utf-8",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}


class DocumentAnswer(msgspec.Struct, frozen=True):
    """The documentation pack of a version: the text of an HTML page, or a Word file in base64."""

    policy: str
    version: int
    file_type: Format
    content: str


def write_pack(service: Service, name: str, number: int | None, kind: Format) -> tuple[int, bytes]:
    """Return the number of the version and its pack."""
    facts = read_pack_facts(service, name, number, audit=audit_status(service).last, source="the service's database")
    document = documentation_pack(facts)
    return facts.number, document_html(document).encode() if kind == "html" else document_docx(document)


@get("/policies/{name:str}/document", include_in_schema=False)
async def download(
    name: PolicyName, request: Req, version: VersionNumber = None, file_type: DocumentFormat = "html"
) -> Response[bytes]:
    """Return the documentation pack as a file."""
    service: Service = request.app.state.service
    number, content = await service.solve(lambda: write_pack(service, name, version, file_type))
    headers = {"Content-Disposition": f'attachment; filename="{name}-version-{number}.{file_type}"'}
    return Response(content, media_type=MEDIA[file_type], headers=headers)


@get("/policies/{name:str}/document", opt={"role": "read"}, responses=documented(404), tags=["policies"])
async def show_document(
    name: PolicyName, request: ApiRequest, version: VersionNumber = None, file_type: DocumentFormat = "html"
) -> DocumentAnswer:
    """Write the documentation pack of a version, for model-risk reviews.

    It has the result of the last audit that was started on the dashboard.
    """
    service: Service = request.app.state.service
    number, content = await service.solve(lambda: write_pack(service, name, version, file_type))
    text = content.decode() if file_type == "html" else b64encode(content).decode()
    return DocumentAnswer(name, number, file_type, text)


HANDLERS = [download]
ENDPOINTS = [show_document]
