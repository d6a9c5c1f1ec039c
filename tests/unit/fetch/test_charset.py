"""Finding the encoding of a page."""
# ruff: noqa: RUF001, E501 - the sample texts are in the scripts they are about

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.fetch.charset import decode

TEXTS = {
    "shift_jis": ("ja", "日本語のページです。これは文字コードを確かめるための文章であり、長さも十分です。"),
    "euc-jp": ("ja", "日本語のページです。これは文字コードを確かめるための文章であり、長さも十分です。"),
    "iso-2022-jp": ("ja", "日本語のページです。これは文字コードを確かめるための文章です。"),
    "gb2312": ("zh", "这是一个中文网页，用来检查编码是否能够被正确识别，所以文章必须足够长。"),
    "gbk": ("zh", "这是一个中文网页，用来检查编码是否能够被正确识别，所以文章必须足够长。"),
    "big5": ("zh", "這是一個中文網頁，用來檢查編碼是否能夠被正確識別，所以文章必須足夠長。"),
    "euc-kr": ("ko", "이것은 인코딩을 확인하기 위한 한국어 페이지입니다. 문장은 충분히 길어야 합니다."),
    "windows-1251": ("ru", "Это русская страница, по которой проверяется определение кодировки текста."),
    "koi8-r": ("ru", "Это русская страница, по которой проверяется определение кодировки текста."),
    "iso-8859-7": ("el", "Αυτή είναι μια ελληνική σελίδα για τον έλεγχο της κωδικοποίησης."),
    "iso-8859-2": ("pl", "To jest polska strona, zażółć gęślą jaźń, którą sprawdzamy kodowanie."),
    "windows-1250": ("cs", "Příliš žluťoučký kůň úpěl ďábelské ódy, zatímco stránka se načítá."),
    "windows-1254": ("tr", "Bu sayfa kodlamayı sınamak için yazıldı; şöyle böyle güçlü ağaçlar."),
    "windows-1252": ("de", "Größere Übungen über Äpfel, Öl und Maße – „so heißt es“ überall."),
    "iso-8859-1": ("fr", "Voilà une page française où l'été dernier fut très agréable à côté."),
}  # fmt: skip


def page(text: str, lang: str, meta: str = "") -> str:
    tag = f'<meta charset="{meta}">' if meta else ""
    return f'<html lang="{lang}"><head>{tag}<title>t</title></head><p>{text * 4}</p></html>'


@pytest.mark.parametrize("encoding", TEXTS)
@pytest.mark.parametrize(
    ("header", "meta"),
    [("", "right"), ("right", ""), ("iso-8859-1", "right"), ("utf-8", "right"), ("right", "utf-8")],
)
def test_declared_encodings(encoding: str, header: str, meta: str) -> None:
    """The right label wins, wherever it stands and whatever a default label beside it says."""
    lang, text = TEXTS[encoding]
    header, meta = (encoding if label == "right" else label for label in (header, meta))
    html = page(text, lang, meta)
    assert decode(html.encode(encoding), header).text == html


@pytest.mark.parametrize(
    "encoding",
    ["shift_jis", "euc-jp", "gb2312", "euc-kr", "big5", "windows-1251", "koi8-r", "windows-1252"],
)
def test_undeclared_encodings_are_detected(encoding: str) -> None:
    """Without any label the text is detected, with the page's language as a hint."""
    lang, text = TEXTS[encoding]
    html = page(text, lang)
    assert decode(html.encode(encoding)).text == html


def test_cyrillic_with_a_default_label_is_not_read_as_latin() -> None:
    """A server's default ISO-8859-1 is not believed for text that cannot be western."""
    lang, text = TEXTS["windows-1251"]
    html = page(text, lang)
    assert decode(html.encode("windows-1251"), "iso-8859-1").text == html


@pytest.mark.parametrize("header", ["", "iso-8859-1", "utf-8", "shift_jis", "nonsense"])
def test_utf8_is_seen_in_the_bytes(header: str) -> None:
    """UTF-8 bytes are read as UTF-8 whatever the header says, also with a few bad bytes."""
    html = page("Größe – 日本語 – русский. ", "de", "iso-8859-1")
    data = html.encode()
    assert decode(data, header) == (html, "utf-8")
    damaged = (data * 20) + b"\xe4 bad"
    assert decode(damaged, header).charset == "utf-8"


@pytest.mark.parametrize(
    ("bom", "name"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
    ],
)
def test_a_byte_order_mark_decides(bom: bytes, name: str) -> None:
    """A byte order mark is believed before all else and is not part of the text."""
    assert decode(bom + "<p>é日</p>".encode(name), "iso-8859-1") == ("<p>é日</p>", name)


def test_the_xml_declaration_counts() -> None:
    """XML without a header is read as its declaration says."""
    text = '<?xml version="1.0" encoding="windows-1251"?><p>Привет, мир</p>'
    assert decode(text.encode("windows-1251")).text == text


@pytest.mark.parametrize("label", ["utf-7", "zlib", "rot13", "idna", "punycode", "unicode_escape"])
def test_codecs_that_are_not_encodings_of_the_web_are_not_used(label: str) -> None:
    """Python's other codecs cannot be chosen by a page."""
    decoded = decode(b"caf\xe9 \\x41 +ADw-", label)
    assert decoded.text.endswith(" \\x41 +ADw-")
    assert codecs.lookup(decoded.charset) != codecs.lookup(label)


@given(st.binary(max_size=400), st.text(max_size=20))
def test_any_bytes_decode(data: bytes, header: str) -> None:
    """Decoding never fails, and names an encoding Python knows."""
    decoded = decode(data, header)
    codecs.lookup(decoded.charset)
    assert isinstance(decoded.text, str)


@given(st.text(min_size=1, max_size=400), st.sampled_from(["", "iso-8859-1", "gbk", "koi8-r"]))
def test_clean_utf8_survives_any_label(text: str, header: str) -> None:
    """Valid UTF-8 comes back as it was."""
    data = text.encode("utf-8", "ignore")
    if not data.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF8)):
        assert decode(data, header).text == data.decode()
