"""Errors as problem documents (RFC 9457) that name the field at fault."""

from http import HTTPStatus
from typing import Any

import msgspec

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """An error as an answer: an HTTP status, what is wrong, and the field at fault, if any."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        field: str | None = None,
        retry_after: int | None = None,
        closes: bool = False,
    ) -> None:
        """``retry_after``: seconds, for errors that pass; ``closes``: the answer closes the connection."""
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.field = field
        self.retry_after = retry_after
        self.closes = closes

    def document(self) -> dict[str, Any]:
        """Returns the problem document."""
        document = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        return document if self.field is None else document | {"field": self.field}

    def body(self) -> bytes:
        """Returns the problem document as JSON."""
        return msgspec.json.encode(self.document())

    def headers(self) -> dict[str, str]:
        """Returns the headers of the answer."""
        headers = {"content-type": MEDIA_TYPE}
        if self.retry_after is not None:
            headers["retry-after"] = str(self.retry_after)
        if self.closes:
            headers["connection"] = "close"
        return headers
