"""What a client reads of a request that failed: OpenAI's error object, and the status."""

from __future__ import annotations

import logging
from typing import Any

from treadle.core.errors import GrammarError, OutOfMemory, QueueFull

_log = logging.getLogger(__name__)

# The kind that OpenAI names for a status, by which its client chooses an exception.
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    422: "invalid_request_error",
    500: "server_error",
    503: "server_error",
}


class ApiError(Exception):
    """A request that fails with a status, and the field that is at fault, if one is."""

    def __init__(
        self, status: int, message: str, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    def body(self) -> dict[str, Any]:
        """The JSON that the client reads."""
        kind = _KINDS.get(self.status, "server_error")
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return {"error": error}


def as_api_error(error: BaseException) -> ApiError:
    """What a client reads of an exception. What it may not read goes to the server's log."""
    found = error_for_client(error)
    if found.status == 500 and found is not error:
        _log.error("a request failed", exc_info=error)
    return found


def error_for_client(error: BaseException) -> ApiError:
    """What a client reads of an exception that the log has already."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, QueueFull):
        return ApiError(503, str(error), code="queue_full")
    if isinstance(error, GrammarError):
        return ApiError(422, str(error), code="grammar")
    if isinstance(error, OutOfMemory):
        return ApiError(503, str(error), code="out_of_memory")
    # What else went wrong may name files of the host.
    return ApiError(500, "the server failed to answer; its log says why", code="internal")
