"""Text and addresses from the web, made safe to stand in a corpus.

A corpus is Markdown that people, programs and language models read. Nothing a page, a search
engine or a database row says may add a heading, a list item, a link or the sentinel line to it,
nor carry characters that are not seen or that reorder what is seen. Text is changed only where
it would do that.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from urllib.parse import quote, urlsplit

from citeflow.context.lookalikes import defuse_sentinel, names_fixed_line, spells_sentinel

__all__ = [
    "clean_layout",
    "clean_line",
    "clean_text",
    "escape_inline",
    "escape_lines",
    "escape_title",
    "safe_slug",
    "safe_url",
]

# Longer addresses are not accepted by common browsers and servers, and would fill a prompt.
_MAX_URL_CHARS = 2000

_NEWLINES = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co"})
# Drawn as nothing although Unicode calls them letters or marks; they can hide or carry text.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\uffff"
    "\U000e0000-\U000e0fff]"
)


def clean_text(text: str) -> str:
    """`text` without control, format and invisible characters; `\\n` is the only line break.

    Lines are stripped and blank ones removed, because a blank line separates sections.
    """
    if text.isascii() and text.isprintable():
        return text.strip()
    seen = _NEWLINES.sub("\n", text).translate(_VISIBLE)
    return "\n".join(stripped for line in seen.split("\n") if (stripped := line.strip()))


class _Visible(dict[int, str]):
    """What each character is seen as, for `str.translate`; worked out when it is first met."""

    # More than any page needs; a page of all characters must not stay in memory.
    LARGEST = 4096

    def __missing__(self, code: int) -> str:
        seen = _visible(chr(code))
        if len(self) < self.LARGEST:
            self[code] = seen
        return seen


_VISIBLE = _Visible()


def _visible(char: str) -> str:
    if char == "\n":
        return char
    # Spaces of any width, and the blank Braille cell, become plain spaces.
    if char.isspace() or char == "\u2800":
        return " "
    hidden = unicodedata.category(char) in _INVISIBLE_CATEGORIES or _INVISIBLE.match(char)
    return "" if hidden else char


def clean_layout(text: str) -> str:
    """As `clean_text`, but lines keep their indentation, all but the first."""
    if text.isascii() and text.isprintable():
        return text.strip()
    seen = _NEWLINES.sub("\n", text).translate(_VISIBLE)
    return "\n".join(line.rstrip() for line in seen.split("\n") if line.strip()).lstrip()


def clean_line(text: str) -> str:
    """As `clean_text`, on one line with single spaces."""
    return " ".join(clean_text(text).split())


# What starts a tag, a comment or an autolink; "a < b" and "<5 %" are left alone.
_TAG_START = re.compile(r"<(?=[A-Za-z/!?])")
_TITLE_MARKUP = re.compile("[\\[\\]`\uff3b\uff3d]")
# A backslash escapes only what Markdown could read as markup.
_LIVE_BACKSLASH = re.compile(r"\\(?=[!-/:-@\[-`{-~]|$)")
# The closing bracket that would make a link, a reference link or a link definition, also in
# full width, should a reader normalise the text.
_LINK_JOINT = re.compile(r"(\\*)([\]\uff3d])(?=[(\[:\uff08\uff3b\uff1a])")


def escape_title(text: str) -> str:
    """A cleaned line as the text of a Markdown link: no bracket, code or tag of its own.

    Full-width brackets are escaped too, should a reader normalise the text.
    """
    escaped = _LIVE_BACKSLASH.sub(r"\\\\", defuse_sentinel(text))
    return _TAG_START.sub("&lt;", _TITLE_MARKUP.sub(r"\\\g<0>", escaped))


def _unlink(match: re.Match[str]) -> str:
    slashes, bracket = match.groups()
    # After an odd number of backslashes the bracket is escaped already.
    return f"{slashes}{bracket}" if len(slashes) % 2 else f"{slashes}\\{bracket}"


def escape_inline(text: str) -> str:
    """Cleaned text that starts in the middle of a line: no link, tag or sentinel of its own."""
    return _TAG_START.sub("&lt;", _LINK_JOINT.sub(_unlink, defuse_sentinel(text)))


_BLOCK_START = re.compile(
    r"""
    [-+*](?=[ \[]|$)            # list item
    | \#{1,6}(?=[ ]|$)          # heading
    | >                         # quotation
    | (?:`{3}|~{3})             # fenced code would swallow the rest of the corpus
    | \|                        # table row
    | [=-]+$                    # underline of a heading
    | [:|-][ :|-]+$             # delimiter row of a table
    | ([*_-])[ ]*(?:\1[ ]*){2,}$  # thematic break
    """,
    re.VERBOSE,
)
_NUMBERED = re.compile(r"(\d{1,9})([.)])(?= |$)")


def _escape_line(indented: str) -> str:
    # In the middle of a paragraph indentation makes no code, and changes nothing of what else a
    # line may be.
    line = indented.lstrip()
    indent = indented[: len(indented) - len(line)]
    if names_fixed_line(line):
        return f"{indent}(page text) {line}"
    if _BLOCK_START.match(line):
        return f"{indent}\\{line}"
    return indent + (_NUMBERED.sub(r"\1\\\2", line, count=1) if _NUMBERED.match(line) else line)


def escape_lines(text: str) -> str:
    """Cleaned text of several lines, the first of which starts in the middle of a line.

    A later line that would read as a heading, a list item, a quotation, code, a table row or a
    fixed line of the corpus is escaped; all others stay as they are.
    """
    first, *rest = escape_inline(text).split("\n")
    return "\n".join([first, *(_escape_line(line) for line in rest)])


_HOST = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?")
_UNSAFE_IN_URL = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9._~!$&'*+,;=:@/?#%-]")


@functools.lru_cache(maxsize=1024)
def safe_url(url: str) -> str | None:
    """`url` as a link target, or None when it is not one that may be cited.

    Only http and https addresses with a host name or IPv4 address and without a user name; none
    with control, format or line-breaking characters or backslashes. Spaces, parentheses,
    brackets, quotes and everything outside ASCII are percent-encoded, host names in IDNA form.
    """
    text = url.strip()
    if not text or len(text) > _MAX_URL_CHARS or "\\" in text or clean_text(text) != text:
        return None
    if "\n" in text:
        return None
    try:
        parts = urlsplit(text)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode("ascii")
    except ValueError:  # UnicodeError, raised for impossible host names, is one too
        return None
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host) or "@" in parts.netloc:
        return None
    authority = parts.netloc
    if not authority.isascii():
        authority = host if port is None else f"{host}:{port}"
    rest = text[len(parts.scheme) + len("://") + len(parts.netloc) :]
    rest = _UNSAFE_IN_URL.sub(lambda match: quote(match.group(), safe=""), rest)
    if spells_sentinel(rest):
        rest = rest.replace(":", "%3A")
    return f"{parts.scheme}://{authority}{rest}"


def safe_slug(slug: str) -> str | None:
    """`slug` as the end of a link target below `/posts/`, or None when it cannot be one."""
    text = clean_line(slug).strip("/")
    if not text or any(part in ("", ".", "..") for part in text.split("/")):
        return None
    return quote(text, safe="/")
