"""Functions that worker processes run in the tests of `citeflow.workers`."""

from __future__ import annotations

import os
import signal
import sys
import time

_calls = 0
_kept: list[bytes] = []


def echo(payload: bytes) -> bytes:
    return payload


def pid(_payload: bytes) -> bytes:
    return str(os.getpid()).encode()


def act(payload: bytes) -> bytes:
    """Do what the payload says, then name the process that did it."""
    global _calls
    _calls += 1
    word, _, argument = payload.decode().partition(" ")
    if word == "sleep":
        time.sleep(float(argument))
    elif word == "raise":
        raise ValueError(argument)
    elif word == "exit":
        os._exit(int(argument))
    elif word == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif word == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)  # like native code that keeps the interpreter lock
    elif word == "noise":
        print("noise" * 1000, flush=True)
        os.write(1, b"\x01" * 100)
        os.write(2, b"\x01" * 100)
        sys.stdin.read()
    elif word == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
    elif word == "memory":
        bytearray(int(argument))
    elif word == "keep":
        _kept.append(b"x" * int(argument))
    elif word == "large":
        return b"x" * int(argument)
    return f"{word} {os.getpid()} {_calls}".encode()
