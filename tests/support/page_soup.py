"""Random pages: pieces of markup, text and rubbish in any order, and answers around them."""

from __future__ import annotations

import gzip
import random

_TAGS = [
    "div",
    "p",
    "span",
    "a",
    "b",
    "i",
    "table",
    "tr",
    "td",
    "th",
    "ul",
    "ol",
    "li",
    "h1",
    "h2",
    "h3",
    "pre",
    "code",
    "article",
    "main",
    "nav",
    "aside",
    "footer",
    "form",
    "input",
    "select",
    "option",
    "script",
    "style",
    "noscript",
    "template",
    "svg",
    "path",
    "iframe",
    "header",
    "section",
    "blockquote",
    "br",
    "hr",
    "img",
    "meta",
    "link",
    "title",
    "body",
    "html",
    "head",
    "time",
    "figure",
    "textarea",
    "button",
    "dl",
    "dt",
    "dd",
    "x-y",
    "frameset",
]
_WORDS = [
    "the",
    "harbour",
    "channel",
    "Wasser",
    "мост",
    "港",
    "é",
    "\u202e",
    "\u200d",
    "�",
    "\x00",
    "cookies",
    "404",
    "&amp;",
    "&#x0;",
    "<",
]
_ATTRIBUTES = (
    "class=comment", "id='main'", "style=display:none", "hidden", 'href="/x"', "role=navigation",
    "datetime=2020-02-02", "content=2020-02-02", "name=date", "property='og:title'", "x" * 300,
    'type="application/ld+json"', "charset=shift_jis", "a=b " * 60, "'", '"',
)  # fmt: skip


def page(rng: random.Random) -> bytes:
    """One page, from nothing to a few hundred kilobytes."""
    parts: list[str] = []
    for _ in range(rng.choice((0, 3, 30, 300, 300, 1500))):
        kind = rng.random()
        if kind < 0.45:
            tag = rng.choice(_TAGS)
            attributes = " ".join(rng.choices(_ATTRIBUTES, k=rng.choice((0, 0, 1, 3))))
            parts.append(f"<{tag} {attributes}>" * rng.choice((1, 1, 1, 1, 40)))
        elif kind < 0.65:
            parts.append(f"</{rng.choice(_TAGS)}>")
        elif kind < 0.92:
            parts.append(" ".join(rng.choices(_WORDS, k=rng.choice((1, 5, 40)))))
        else:
            parts.append(rng.choice(("<!--", "-->", "<![CDATA[", "]]>", "<?php", "{", '{"a":[')))
    data = "".join(parts).encode(rng.choice(("utf-8", "utf-16", "utf-8")), "surrogatepass")
    for _ in range(rng.choice((0, 0, 5))):
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.randbytes(rng.choice((1, 20))) + data[at:]
    return data


def answer(rng: random.Random, body: bytes) -> bytes:
    """A response with this body, in order or not."""
    coding = rng.choice(("", "", "gzip", "br", "deflate"))
    if coding == "gzip" and rng.random() < 0.8:
        body = gzip.compress(body)
    kind = rng.choice(
        (
            "text/html",
            "text/html; charset=latin-1",
            "text/plain",
            "application/pdf",
            "",
            "image/png",
        )
    )
    status = rng.choice(
        ("200 OK", "200 OK", "200 OK", "404 No", "302 Found", "503 Busy", "999", "x")
    )
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Encoding: {coding}\r\n"
    length = len(body) + rng.choice((0, 0, 0, 0, 7, -1))
    head += (
        f"Content-Length: {length}\r\nLocation: {rng.choice(('/', '//', 'http://127.0.0.1/'))}\r\n"
    )
    whole = (head + "\r\n").encode() + body
    return whole[: rng.randrange(len(whole))] if rng.random() < 0.1 else whole
