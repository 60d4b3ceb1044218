"""What would be if something were changed; nothing is."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Request
from pydantic import ValidationError

from app.api.routes import SyncedStore, problems
from app.problems import Problem
from app.whatif import changes
from app.whatif.changes import Change
from app.whatif.models import WhatIfModel, WhatIfRequest
from app.whatif.service import Trials

router = APIRouter(prefix="/api/v1", responses=problems(400, 413, 422, 503))

_BODY = {"content": {"application/json": {"schema": WhatIfRequest.model_json_schema()}}, "required": True}


async def changes_of(request: Request) -> list[Change]:
    """The changes that a request asks about. Raises Problem (400, 413, 422)."""
    body: bytes = request.state.body
    try:
        asked = WhatIfRequest.model_validate(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the body is not JSON, or nested too deeply: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise Problem(422, first["msg"], field=".".join(str(part) for part in first["loc"])) from error
    return changes.read(asked.apply, asked.remove)


@router.post("/whatif", openapi_extra={"requestBody": _BODY})
async def what_if(
    request: Request, changes: Annotated[list[Change], Depends(changes_of)], _: SyncedStore
) -> WhatIfModel:
    """Who would run, go and wait if these manifests were applied and these objects removed. Changes nothing.

    A manifest of an object that is there is merged into it, as `kubectl patch --type merge` does.
    """
    trials: Trials = request.app.state.trials
    return await trials.what_if(changes)
