"""/v1/erasures: erase the personal data of all decisions with a reference, or of a certain age."""

from __future__ import annotations

from litestar import Response
from litestar.params import JSONBody

from lenience.service.commands.erase import Erase, ErasureRequest
from lenience.service.domain.answers import ErasureAnswer
from lenience.service.domain.clock import now
from lenience.service.domain.receipts import make_sender
from lenience.service.http.common import IdempotencyKey, Req, answered, changing
from lenience.service.queries.personal_data import DAY, decisions_with_personal_data
from lenience.service.queries.reading import Filters


@changing("/erasures", "admin", "erasures")
async def erase_many(
    data: JSONBody[ErasureRequest], request: Req, idempotency_key: IdempotencyKey = None
) -> Response[ErasureAnswer]:
    """Erase the personal data of matching decisions, at most 1,000 at a time: pass ``next`` as ``after`` to continue.

    This cannot be undone. The log stays complete and gets an event for each decision. With ``dry_run`` the decisions
    are only counted.
    """
    service = request.app.state.service
    until = None if data.older_than_days is None else now() - int(data.older_than_days * DAY)
    filters = Filters(policy=data.policy, reference=data.reference, until=until)
    decisions, following = await service.ask(lambda: decisions_with_personal_data(service.queries, filters, data.after))
    if data.dry_run:
        return Response(ErasureAnswer(len(decisions), 0, following))
    sent_by = make_sender(request.auth, idempotency_key, "POST /v1/erasures", data)
    return answered(await service.perform(Erase(sent_by, decisions, following)))


HANDLERS = [erase_many]
