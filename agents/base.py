"""What every agent is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from schemas import Origin, Record

__all__ = ["Agent", "Emit", "Inbound"]

R = TypeVar("R", bound=Record)

Emit = Callable[[Record], Awaitable[None]]
"""Sends a record to its topic; returns when the broker has acknowledged it."""


@dataclass(frozen=True, slots=True)
class Inbound(Generic[R]):
    """An event as read: the record, and where it stood."""

    record: R
    origin: Origin


class Agent(Protocol[R]):
    """One stage of the line.

    `handle` may raise `EventError` for an event that no retry can save, and anything else when
    something failed; it is then tried again. `give_up` is called after the last try and emits
    the answer that tells what failed, so that the request goes on.
    """

    stage: str

    def request_id(self, event: Inbound[R]) -> str:
        """The request that the event belongs to, for findings."""

    async def handle(self, event: Inbound[R], emit: Emit) -> None:
        """Turn the event into others."""

    async def give_up(self, event: Inbound[R], error: Exception, emit: Emit) -> None:
        """Emit what stands for the answer that `handle` could not give."""
