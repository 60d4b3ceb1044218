"""What-if questions: tries changes on a copy, and changes nothing."""

from dataclasses import replace
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Depends, Request
from msgspec import Raw

from app import bodies
from app.api.routes import SyncedStore, problems
from app.pause import at_leisure
from app.problems import Problem
from app.whatif import changes
from app.whatif.changes import Change
from app.whatif.models import WhatIfModel, WhatIfRequest
from app.whatif.service import Trials
from policy.stepwise import Steps

router = APIRouter(prefix="/api/v1", responses=problems(400, 401, 403, 413, 422, 429, 503))

_BODY = {"content": {"application/json": {"schema": WhatIfRequest.model_json_schema()}}, "required": True}


T = TypeVar("T")

_parts = msgspec.json.Decoder(dict[str, Raw])
_objects = msgspec.json.Decoder(list[Raw])
_anything = msgspec.json.Decoder(Any)


async def changes_of(request: Request) -> list[Change]:
    """Returns the changes in a request's body. Raises Problem (400, 422)."""
    limit: int = request.app.state.settings.whatif.body_limit
    return await at_leisure(_read_steps(request.state.body, limit // bodies.BYTES_PER_ITEM))


def _read_steps(body: bytes, most: int) -> Steps[list[Change]]:
    """Reads the changes of a question, removals first. Pauses after each. Raises Problem (400, 422)."""
    bodies.ensure_narrow(body, most)
    parts, found = _decode(_parts, body, None), list[Change]()
    for unknown in parts.keys() - {"apply", "remove"}:
        raise Problem(422, "there is no such field", field=unknown)
    for part in ("remove", "apply"):
        objects = _decode(_objects, parts.get(part, b"[]"), part)
        for number, raw in enumerate(objects):
            field = f"{part}[{number}]"
            bodies.ensure_narrow(bytes(raw), bodies.WIDEST, field)
            document = _decode(_anything, raw, field)
            bodies.ensure_shallow(document, field)
            change = changes.change_of(document, field)
            found.append(change if part == "apply" else replace(change, manifest=None))
            yield
    return found


def _decode(decoder: msgspec.json.Decoder[T], body: bytes | Raw, field: str | None) -> T:
    """Decodes a body, or a field of one. Raises Problem (400, 422)."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, str(error), field=field) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, f"the body is not JSON: {error}", field=field) from error
    except RecursionError as error:
        raise bodies.too_deep(field) from error


@router.post("/whatif", openapi_extra={"requestBody": _BODY})
async def what_if(
    request: Request, changes: Annotated[list[Change], Depends(changes_of)], _: SyncedStore
) -> WhatIfModel:
    """Says which pods would run, end and wait if these manifests were applied and these objects removed.

    Changes nothing. A manifest of an existing object is merged into it, as `kubectl patch --type merge` does.
    """
    trials: Trials = request.app.state.trials
    return await trials.what_if(changes)
