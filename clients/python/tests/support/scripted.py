"""Calls whose attempts have outcomes that a test decides."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2, status_pb2

from polynym import PolynymError
from polynym._rules import Send, Sleep


class Fault(grpc.RpcError):
    """A failure of an attempt."""

    def __init__(
        self,
        code: str,
        reason: str = "",
        delay: float | None = None,
        text: str = "text",
        **metadata: str,
    ) -> None:
        self._text = text
        self._code = grpc.StatusCode[code]
        self.status = status_pb2.Status(code=self._code.value[0], message=text)
        details: list[Any] = []
        if reason:
            info = error_details_pb2.ErrorInfo(reason=reason, domain="polynym", metadata=metadata)
            details.append(info)
        if delay is not None:
            retry = error_details_pb2.RetryInfo()
            retry.retry_delay.FromMilliseconds(int(delay * 1000))
            details.append(retry)
        for detail in details:
            packed = AnyMessage()
            packed.Pack(detail)
            self.status.details.append(packed)

    def code(self) -> grpc.StatusCode:
        """Returns the code."""
        return self._code

    def details(self) -> str:
        """Returns the text."""
        return self._text

    def trailing_metadata(self) -> Any:
        """Returns the packed details."""
        return (("grpc-status-details-bin", self.status.SerializeToString()),)


def perform(steps: Generator[Any, Any, Any], *outcomes: Any) -> tuple[Any, list[Any], list[float]]:
    """Performs steps. Returns the result or error, the requests, and the delays."""
    requests: list[Any] = []
    delays: list[float] = []
    remaining = list(outcomes)
    try:
        step = next(steps)
        while True:
            if isinstance(step, Sleep):
                delays.append(step.seconds)
                step = next(steps)
                continue
            assert isinstance(step, Send)
            requests.append(step.request)
            outcome = remaining.pop(0)
            is_fault = isinstance(outcome, Exception)
            step = steps.throw(outcome) if is_fault else steps.send(outcome)
    except StopIteration as end:
        result = end.value
    except PolynymError as error:
        result = error
    assert not remaining
    return result, requests, delays


def perform_always(steps: Generator[Any, Any, Any], fault: Fault) -> list[Any]:
    """Performs steps whose attempts all fail. Returns the requests."""
    requests: list[Any] = []
    try:
        step = next(steps)
        while True:
            if isinstance(step, Send):
                requests.append(step.request)
                step = steps.throw(fault)
            else:
                step = next(steps)
    except PolynymError:
        return requests
