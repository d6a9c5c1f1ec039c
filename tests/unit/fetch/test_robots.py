"""robots.txt: groups, the longest rule, wildcards, and what is no rule."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.fetch.robots import parse_robots

US = "CiteflowContentResearcher"


def allows(text: str, path: str) -> bool:
    return parse_robots(text, US).allows(path)


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("", "/x", True),
        ("User-agent: *\nDisallow: /", "/x", False),
        ("User-agent: *\nDisallow:", "/x", True),
        ("user-agent: *\ndisallow: /private # not here", "/private/x", False),
        ("User-agent: *\nDisallow: /private", "/public", True),
        ("User-agent: *\nDisallow: /\nUser-agent: citeflowcontentresearcher\nAllow: /", "/x", True),
        ("User-agent: CiteflowContentResearcher\nDisallow: /", "/x", False),
        ("User-agent: Other\nUser-agent: *\nDisallow: /", "/x", False),
        ("User-agent: Other\nDisallow: /\nUser-agent: *\nDisallow: /y", "/x", True),
        ("User-agent: *\nDisallow: /a\nUser-agent: *\nDisallow: /b", "/b", False),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),
        ("User-agent: *\nAllow: /a\nDisallow: /a", "/a", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf?z", True),
        ("User-agent: *\nDisallow: /a*b*c", "/a1b2c3", False),
        ("User-agent: *\nDisallow: /a*b*c", "/a1c2b3", True),
        ("User-agent: *\nDisallow: /*?session=", "/x?session=1", False),
        ("User-agent: *\nDisallow: /x$", "/x", False),
        ("User-agent: *\nDisallow: /x$", "/xy", True),
        ("User-agent: *\nDisallow: /a*a$", "/a", True),
        ("User-agent: *\nDisallow: /%7ejoe", "/~joe/x", False),
        ("User-agent: *\nDisallow: /caf\u00e9", "/caf%C3%A9", False),
        ("User-agent: *\nDisallow: /a%2fb", "/a/b", True),
        ("User-agent: *\nDisallow: /", "/robots.txt", True),
        ("\ufeffUser-agent: *\r\nDisallow: /\r\n", "/x", False),
        ("Disallow: /\n<html>nonsense: yes", "/x", True),
    ],
)  # fmt: skip
def test_rules(text: str, path: str, allowed: bool) -> None:
    """As RFC 9309 has it."""
    assert allows(text, path) is allowed


def test_hostile_rules_take_no_time() -> None:
    """Wildcards are matched in linear time, and only so many lines are read."""
    rule = "Disallow: /" + "*a" * 200 + "b\n"
    started = time.process_time()
    assert allows("User-agent: *\n" + rule * 1000, "/" + "a" * 5000)
    assert time.process_time() - started < 5


@given(st.text(max_size=300), st.text(max_size=50))
def test_any_text_is_read(text: str, path: str) -> None:
    """Never raises."""
    allows(f"User-agent: *\nDisallow: {text}\n{text}", path)
