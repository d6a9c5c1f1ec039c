"""How the join's states are stored, and which of two stands."""

from __future__ import annotations

import logging
from datetime import datetime

import msgspec

from streams.join import JoinState, Phase, decode_state, encode_state, merge

__all__ = ["JoinCodec"]

logger = logging.getLogger(__name__)

_DAMAGED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Peek(msgspec.Struct):
    """So much of a state as tells mostly which of two stands."""

    phase: Phase


_peek = msgspec.json.Decoder(_Peek)


class JoinCodec:
    """JSON, and the rule of `streams.join.merge`."""

    def encode(self, state: JoinState) -> bytes:
        """The state as stored."""
        return encode_state(state)

    def decode(self, key: bytes, data: bytes) -> JoinState | None:
        """The state as read, None when it is damaged."""
        try:
            return decode_state(data)
        except _DAMAGED:
            logger.error("the state of request %r is damaged and left out", key)
            return None

    def due_at(self, state: JoinState) -> datetime:
        """Its deadline, or its expiry."""
        return state.due_at

    def merge(self, before: bytes, logged: bytes) -> bytes:
        """The merged state; reads both whole only where two workers collect pages."""
        try:
            was, comes = _peek.decode(before).phase, _peek.decode(logged).phase
            if was is not comes:
                order = tuple(Phase)
                return logged if order.index(comes) > order.index(was) else before
            if comes is not Phase.COLLECTING:
                return before
            old, new = decode_state(before), decode_state(logged)
        except _DAMAGED:
            return logged  # one is damaged: the later one can be read, or an event starts it anew
        state = merge(old, new)
        return logged if state == new else encode_state(state)
