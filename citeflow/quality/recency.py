"""How recent a source is, from the date that search engines put in front of a snippet.

Understood, each followed by a separator (a free-standing hyphen, a dash, a middle dot, a bullet
or an ellipsis):

* `3 days ago`, `an hour ago`, `yesterday`, `today`, and their German, French, Spanish, Italian,
  Portuguese, Dutch, Chinese, Japanese and Korean forms;
* `Mar 15, 2024`, `15 March 2024`, `15. März 2024`, `15 de marzo de 2024`, `Mar 2024` (its first
  day), with abbreviated months and an optional dot;
* `2024-03-15`, `15.03.2024` (day first, as only day-first countries use dots), `2024年3月15日`.

A month counts 30 days and a year 365. A date in the future has age 0; an impossible date or an
unknown month is no date. Scores: 0.9 up to `fresh_days` old, 0.8 up to `recent_days`, else 0.6;
0.7 without a date. The scores are those of the system citeflow reimplements.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, date, datetime

__all__ = ["leading_age_days", "recency_score"]

FRESH, RECENT, UNDATED, OLD = 0.9, 0.8, 0.7, 0.6

_DAYS_PER_UNIT = {"minute": 0, "hour": 0, "day": 1, "week": 7, "month": 30, "year": 365}

_UNIT_WORDS = {
    "minute": "minute minutes min mins minuten minuto minutos minuti minuut 分钟前 分前 분",
    "hour": "hour hours hr hrs stunde stunden heure heures hora horas ora ore uur "
    "小时前 時間前 시간",
    "day": "day days tag tage tagen jour jours dia dias giorno giorni dag dagen 天前 日前 일",
    "week": "week weeks woche wochen semaine semaines semana semanas settimana settimane weken "
    "周前 週間前 주",
    "month": "month months monat monate monaten mois mes meses mese mesi maand maanden "
    "个月前 か月前 ヶ月前 개월",
    "year": "year years jahr jahre jahren an ans annee annees ano anos anno anni jaar 年前 년",
}
_UNITS = {word: unit for unit, words in _UNIT_WORDS.items() for word in words.split()}

# Names and abbreviations without accents, lower case; a longer name that starts with one of
# these is looked up by itself, never cut down to it.
_MONTH_WORDS = (
    "jan january januar janvier janv enero ene gennaio gen janeiro januari",
    "feb february februar fevrier fevr febrero febbraio fevereiro fev februari",
    "mar march marz maerz mrz mars marzo marco maart mrt",
    "apr april avril avr abril abr aprile",
    "may mai mayo maggio mag maio mei",
    "jun june juni juin junio giugno giu junho",
    "jul july juli juillet juil julio luglio lug julho",
    "aug august aout agosto ago augustus",
    "sep sept september septembre septiembre settembre set setembro",
    "oct october oktober okt octobre octubre ottobre ott outubro out",
    "nov november novembre noviembre novembro",
    "dec december dezember dez decembre diciembre dic dicembre dezembro",
)
_MONTHS = {
    word: number for number, words in enumerate(_MONTH_WORDS, start=1) for word in words.split()
}

_DAY_WORDS = {
    "today": 0, "heute": 0, "aujourd'hui": 0, "hoy": 0, "oggi": 0, "hoje": 0, "vandaag": 0,
    "just now": 0, "今天": 0, "今日": 0, "오늘": 0,
    "yesterday": 1, "gestern": 1, "hier": 1, "ayer": 1, "ieri": 1, "ontem": 1, "gisteren": 1,
    "昨天": 1, "昨日": 1, "어제": 1,
}  # fmt: skip

# A date stands at the start of the snippet; 40 characters hold the longest one of the grammar
# with its separator, and bound the work done on any snippet.
_LEAD_CHARS = 40
# The plain hyphen must stand free, otherwise "2024-03-15-release" would begin with a date.
_LEAD = re.compile(
    r"\s*(?P<date>[^·•…\u2013\u2014]{2,34}?)\s*"
    r"(?:[·•…\u2013\u2014]|\.\.\.|(?:(?<=\s)-|-(?=\s|$)))"
)

_COUNT = r"(?P<count>\d{1,4}|an?|one|einem|einer|une?|un|una|uno|um|uma|een)"
_UNIT = r"(?P<unit>[^\W\d_]+)"
_AGO = (
    re.compile(rf"{_COUNT}\s*{_UNIT}\s+(?:ago|fa|atras|geleden)"),
    re.compile(rf"(?:vor|il y a|hace|ha)\s+{_COUNT}\s*{_UNIT}"),
    re.compile(r"(?P<count>\d{1,4})\s*(?P<unit>[^\W\d_]+前)"),
    re.compile(r"(?P<count>\d{1,4})\s*(?P<unit>[^\W\d_]+)\s*전"),
)
_ABSOLUTE = (
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"),
    re.compile(r"(?P<year>\d{4})\s*年\s*(?P<month>\d{1,2})\s*月\s*(?P<day>\d{1,2})\s*日"),
    re.compile(r"(?P<year>\d{4})\s*년\s*(?P<month>\d{1,2})\s*월\s*(?P<day>\d{1,2})\s*일"),
    re.compile(r"(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.\s?(?P<year>\d{4})"),
    re.compile(r"(?P<name>[^\W\d_]+)\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<year>\d{4})"),
    re.compile(
        r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.)?\s+(?:de\s+|of\s+)?(?P<name>[^\W\d_]+)\.?,?\s+"
        r"(?:de\s+|del\s+)?(?P<year>\d{4})"
    ),
    re.compile(r"(?P<name>[^\W\d_]+)\.?,?\s+(?:de\s+)?(?P<year>\d{4})"),
)


def _plain(text: str) -> str:
    """Lower case, Latin letters without their accents, other scripts untouched."""
    decomposed = unicodedata.normalize(
        "NFD", text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    )
    kept = "".join(char for char in decomposed if not "\u0300" <= char <= "\u036f")
    return " ".join(unicodedata.normalize("NFC", kept).split())


def _relative_age(text: str) -> int | None:
    if text in _DAY_WORDS:
        return _DAY_WORDS[text]
    for pattern in _AGO:
        match = pattern.fullmatch(text)
        unit = _UNITS.get(match["unit"]) if match else None
        if match and unit:
            count = int(match["count"]) if match["count"].isdigit() else 1
            return count * _DAYS_PER_UNIT[unit]
    return None


def _absolute_age(text: str, today: date) -> int | None:
    for pattern in _ABSOLUTE:
        match = pattern.fullmatch(text)
        if not match:
            continue
        parts = match.groupdict()
        month = int(parts["month"]) if parts.get("month") else _MONTHS.get(parts.get("name") or "")
        if month is None:
            return None
        try:
            then = date(int(parts["year"]), month, int(parts.get("day") or 1))
        except ValueError:
            return None
        return max(0, (today - then).days)
    return None


def leading_age_days(snippet: str, now: datetime) -> int | None:
    """Age in days of the date `snippet` begins with, None when it does not begin with one.

    `now` is an aware time; days are those of UTC.
    """
    match = _LEAD.match(snippet[:_LEAD_CHARS])
    if not match:
        return None
    text = _plain(match["date"])
    age = _relative_age(text)
    return _absolute_age(text, now.astimezone(UTC).date()) if age is None else age


def recency_score(snippet: str, now: datetime, *, fresh_days: int, recent_days: int) -> float:
    """Score the date `snippet` begins with; both bounds are inclusive."""
    age = leading_age_days(snippet, now)
    if age is None:
        return UNDATED
    if age <= fresh_days:
        return FRESH
    return RECENT if age <= recent_days else OLD
