"""One agent per module: an agent turns one event into other events, and owns no policy."""

from agents.base import Agent, Emit, Inbound

__all__ = ["Agent", "Emit", "Inbound"]
