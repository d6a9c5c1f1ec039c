"""jusText as a second opinion: main text by paragraph, with the page's own language.

Differences from calling the library: the stop list follows the detected language; languages
without one are judged by length and links alone; pages of short paragraphs get a second and a
third pass; and neighbours are looked up in linear time (the library's search is quadratic in the
number of paragraphs). The parameters were chosen on annotated pages; the optimum is flat.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

import justext
import lxml.html
from justext.core import ParagraphMaker, classify_paragraphs
from lxml import etree
from resiliparse.parse.lang import detect_fast

from citeflow.fetch.limits import EXTRACT_LIMITS

__all__ = ["main_paragraphs", "page_language", "revise_linear"]

_LENGTH_LOW = 50
# The first pass wants paragraphs of 200 characters; news in short paragraphs has hardly any.
_LENGTH_HIGH_PASSES = (200, 70, 35)
_STOPWORDS_LOW, _STOPWORDS_HIGH = 0.30, 0.32
_MAX_LINK_DENSITY = 0.35
# Shorter paragraphs are menus, whose language is often another one.
_LANGUAGE_PARAGRAPH_CHARS = 80
_LANGUAGE_SAMPLE_CHARS = 20_000
_NOT_TEXT = ("head", "script", "style", "noscript", "template", "svg", "form", "iframe", "object")
_HTML_LANG = re.compile(r"<html\s[^>]{0,1000}?\blang\s*=\s*[\"']?([a-zA-Z]{2,3})")

# ISO 639-1 (and -3) to the names of the library's stop lists.
_STOP_LISTS = {
    "af": "Afrikaans", "an": "Aragonese", "ar": "Arabic", "ast": "Asturian", "az": "Azerbaijani",
    "be": "Belarusian", "bg": "Bulgarian", "bn": "Bengali", "br": "Breton", "bs": "Bosnian",
    "ca": "Catalan", "ceb": "Cebuano", "cs": "Czech", "cv": "Chuvash", "cy": "Welsh",
    "da": "Danish", "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto",
    "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "fy": "West_Frisian", "ga": "Irish", "gl": "Galician", "gu": "Gujarati",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "ht": "Haitian", "hu": "Hungarian",
    "hy": "Armenian", "id": "Indonesian", "ig": "Igbo", "io": "Ido", "is": "Icelandic",
    "it": "Italian", "jv": "Javanese", "ka": "Georgian", "kk": "Kazakh", "kn": "Kannada",
    "ko": "Korean", "ku": "Kurdish", "ky": "Kyrgyz", "la": "Latin", "lb": "Luxembourgish",
    "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ml": "Malayalam", "mr": "Marathi",
    "ms": "Malay", "mt": "Maltese", "nb": "Norwegian_Bokmal", "ne": "Nepali", "nl": "Dutch",
    "nn": "Norwegian_Nynorsk", "no": "Norwegian_Bokmal", "oc": "Occitan", "pl": "Polish",
    "pt": "Portuguese", "qu": "Quechua", "ro": "Romanian", "ru": "Russian",
    "sh": "Serbo_Croatian", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian",
    "su": "Sundanese", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu",
    "tk": "Turkmen", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "uz": "Uzbek", "vi": "Vietnamese", "yo": "Yoruba",
}  # fmt: skip


@functools.lru_cache(maxsize=16)
def _stop_words(language: str) -> frozenset[str]:
    name = _STOP_LISTS.get(language)
    return justext.get_stoplist(name) if name else frozenset()


def main_paragraphs(html: str) -> str:
    """The main text of a page by jusText, a paragraph a line; blank when it finds none."""
    try:
        document = lxml.html.document_fromstring(html)
    except (etree.ParserError, ValueError):  # nothing but comments, or an encoding declaration
        return ""
    etree.strip_elements(document, *_NOT_TEXT, etree.Comment, with_tail=False)
    found = ParagraphMaker.make_paragraphs(document)
    texts = [" ".join(paragraph.text.split()) for paragraph in found]
    stop_words = _stop_words(page_language(html, texts))
    low, high = (_STOPWORDS_LOW, _STOPWORDS_HIGH) if stop_words else (0.0, 0.0)
    best = ""
    for length_high in _LENGTH_HIGH_PASSES:
        classify_paragraphs(
            found,
            stop_words,
            length_low=min(_LENGTH_LOW, length_high),
            length_high=length_high,
            stopwords_low=low,
            stopwords_high=high,
            max_link_density=_MAX_LINK_DENSITY,
            no_headings=True,
        )
        labels = revise_linear([paragraph.cf_class for paragraph in found])
        good = (text for text, label in zip(texts, labels, strict=True) if label == "good")
        best = max(best, "\n".join(good), key=len)
        if len(best) >= EXTRACT_LIMITS.short_text_chars:
            break
    return best


def page_language(html: str, paragraphs: Iterable[str]) -> str:
    """The ISO 639 code of the page's language: of its longer paragraphs, else of its html tag."""
    sample = " ".join(text for text in paragraphs if len(text) > _LANGUAGE_PARAGRAPH_CHARS)
    if sample:
        return str(detect_fast(sample[:_LANGUAGE_SAMPLE_CHARS])[0])
    declared = _HTML_LANG.search(html[:_LANGUAGE_SAMPLE_CHARS])
    return declared[1].lower() if declared else ""


def revise_linear(labels: Sequence[str]) -> list[str]:
    """The labels of jusText's context-sensitive step, without its rules for headings.

    `labels` are those of the context-free step: `good`, `bad`, `short`, `neargood`. The same
    answer as `justext.core.revise_paragraph_classification`, by two sweeps per rule.
    """
    before, after = _neighbours(labels), _neighbours(labels[::-1])[::-1]
    revised = list(labels)
    for i, label in enumerate(labels):
        if label != "short":
            continue
        (previous, previous_near), (following, following_near) = before[i], after[i]
        if previous == following:
            revised[i] = previous
        elif (previous == "bad" and previous_near) or (following == "bad" and following_near):
            revised[i] = "good"
        else:
            revised[i] = "bad"
    # A near-good paragraph is kept unless bad ones are on both sides. Decisions made on the way
    # down count for the paragraphs below, as in the library.
    following_at = [neighbour for neighbour, _ in _neighbours(revised[::-1])[::-1]]
    previous = "bad"
    for i, label in enumerate(revised):
        if label == "neargood":
            revised[i] = "bad" if previous == following_at[i] == "bad" else "good"
        if revised[i] in ("good", "bad"):
            previous = revised[i]
    return revised


def _neighbours(labels: Sequence[str]) -> list[tuple[str, bool]]:
    """For each place the nearest `good` or `bad` label before it (`bad` if there is none), and
    whether a `neargood` one is nearer."""
    nearest, near = "bad", False
    found = []
    for label in labels:
        found.append((nearest, near))
        if label in ("good", "bad"):
            nearest, near = label, False
        elif label == "neargood":
            near = True
    return found
