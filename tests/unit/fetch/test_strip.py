"""All of a page's text on one line."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow import is_public_https, strip_html_to_text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("bo<b>ld</b> word<p>x</p>y", "bold word x y"),
        ("a &lt; b and c &gt; d &amp;amp;", "a < b and c > d &amp;"),
        ("a < b and c > d", "a < b and c > d"),
        ("<article><header><h1>Head</h1></header>text</article>", "Head text"),
        ("<header>Logo</header><nav>Menu</nav>text<footer>Imprint</footer>", "text"),
        ("<nav-bar>kept</nav-bar> text", "kept text"),
        ("<nav><nav>a</nav>b</nav>text", "text"),
        ("text<script>1 < 2</script><style>x</style><noscript>n</noscript>", "text"),
        ("<template>t</template><!-- a > b -->text", "text"),
        ('<p title="a > b">text</p>', "text"),
        ("one<br>two<td>three", "one two three"),
        ("  a \n\t b  ", "a b"),
        ("", ""),
    ],
)
def test_tags_go_and_words_stay(html: str, text: str) -> None:
    """Blocks part words, inline elements do not; what is no text goes."""
    assert strip_html_to_text(html, 1000) == text


def test_the_text_is_cut() -> None:
    """Never more than asked for; nothing for nothing."""
    assert strip_html_to_text("<p>abc def", 4) == "abc"
    assert [strip_html_to_text("abc", n) for n in (0, -1)] == ["", ""]
    assert strip_html_to_text(None, 10) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize("piece", ["<script>", "<", "<meta ", "<div>", "<nav>", "<header>"])
def test_hostile_markup_takes_no_time(piece: str) -> None:
    """400 kB of openings end well within a second of work."""
    started = time.process_time()
    strip_html_to_text(piece * (400_000 // len(piece)), 4000)
    assert time.process_time() - started < 2


@given(st.text(max_size=200))
def test_any_text_is_stripped(text: str) -> None:
    """Never raises."""
    assert len(strip_html_to_text(text, 50)) <= 50


@pytest.mark.parametrize(
    "url",
    [
        "http://1.1.1.1/", "https://127.0.0.1/", "https://localhost/", "https://10.0.0.1/",
        "https://192.168.1.1/", "https://169.254.169.254/", "https://100.64.0.1/",
        "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://2130706433/", "https://1.1.1.1:8443/",
        "https://user@1.1.1.1/", "https://", "https://a:b:c", "file:///etc/passwd", "plain text",
        "", "https://x\0y/", "https://[bad", None, 7,
    ],
)  # fmt: skip
def test_what_is_not_public_https(url: str) -> None:
    """Other schemes, ports, local and malformed addresses are not."""
    assert is_public_https(url) is False


@pytest.mark.parametrize("url", ["https://1.1.1.1/", "https://[2606:4700:4700::1111]/page?x=1"])
def test_what_is_public_https(url: str) -> None:
    """Public addresses of both families are."""
    assert is_public_https(url) is True
