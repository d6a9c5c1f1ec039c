"""How the commands speak: progress to people on stderr, results on stdout."""

from __future__ import annotations

import sys

__all__ = ["result", "say"]


def say(message: str) -> None:
    """Progress, notes and errors, on stderr."""
    print(message, file=sys.stderr, flush=True)  # noqa: T201 - this is the command line's voice


def result(text: str) -> None:
    """A result, on stdout."""
    print(text, flush=True)  # noqa: T201 - this is the command line's voice
