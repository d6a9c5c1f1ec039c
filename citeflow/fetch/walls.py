"""Pages that were served, and are not what was asked for: what each kind gives away about itself.

Only a page with little text is looked at this closely. Words decide together with what they
stand in: an article about captchas has text, a captcha has none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from citeflow.fetch.exchange import Readability

if TYPE_CHECKING:  # the parser itself is for the workers, this module is not
    from selectolax.lexbor import LexborHTMLParser

__all__ = ["is_challenge", "wall_of", "without_consent_lines"]

# More text than this is an article, whatever else is on the page.
_WALL_CHARS = 1_500
# A teaser of a few sentences in front of a paywall can be cited, a single one cannot.
_TEASER_CHARS = 500
_ERROR_CHARS = 800
_SHELL_CHARS = 40
_CONSENT_SHARE = 0.4
# What of the markup is searched; the markers stand near the beginning or in the last scripts.
_MARKUP_CHARS = 200_000

_CHALLENGE_TITLE = re.compile(
    r"just a moment|attention required|access denied|access to this page has been denied"
    r"|are you (?:a )?(?:human|robot)|pardon our interruption|ddos protection|security check"
    r"|checking your browser|verify(?:ing)? (?:that )?you are (?:a )?human|robot check|captcha"
    r"|bot verification|human verification|one more step|einen moment|un momento",
    re.I,
)
_CHALLENGE_MARKUP = re.compile(
    r"cf[-_]chl|challenge-platform|px-captcha|_Incapsula_Resource|captcha-delivery\.com|ddos-guard"
    r"|g-recaptcha|h-captcha|hcaptcha\.com|cf-turnstile|awswafcookie|aws-waf-token|sgcaptcha"
    r"|geetest|perimeterx|kasada|distil_r_captcha|anubis_challenge",
    re.I,
)
_CHALLENGE_TEXT = re.compile(
    r"verify (?:that )?you(?:'re| are) (?:a )?human|not a robot|unusual (?:traffic|activity)"
    r"|checking (?:if the site connection is secure|your browser)|complete the (?:captcha|security)"
    r"|enable (?:javascript and )?cookies to continue|automated (?:access|requests)"
    r"|solve the (?:captcha|puzzle)|kein roboter|pas un robot|no soy un robot|не робот",
    re.I,
)
_CONSENT_WORDS = re.compile(
    r"\bcookies?\b|\bconsent\b|\bgdpr\b|\bdsgvo\b|privacy|datenschutz|einwillig|confidentialit"
    r"|consentement|privacidad|consentimiento|zgod[ay]|prywatno|toestemming|tracking"
    r"|(?:ad(?:vertising)?|werbe|our|unsere[nr]?|nos|nuestros) ?(?:partners?|partnern|partenaires"
    r"|socios)|personali[sz]ed|personalisierte|legitimate interest|berechtigtes interesse"
    r"|クッキー|同意|隐私|cookie-",
    re.I,
)
_CONSENT_ACTION = re.compile(
    r"accept (?:all|cookies|and)|reject all|i (?:agree|accept)|agree (?:and|&) (?:close|continue)"
    r"|manage (?:options|preferences|settings|choices)|before you continue|we (?:and our|use cook)"
    r"|alle akzeptieren|akzeptieren|zustimmen|ablehnen|bevor sie fortfahren|tout accepter"
    r"|accepter|refuser|aceptar|rechazar|accetta|rifiuta|akceptuj|accepteren|同意する|接受",
    re.I,
)
# One such sentence at the head or foot of a text is the banner of the page, not its text.
_CONSENT_LINE = re.compile(
    r"\b(?:we|this (?:web)?site|our (?:web)?site)\b[^.]{0,40}\buses? (?:[a-z ]{0,20})cookies\b"
    r"|\bby (?:continuing|clicking|choosing|using)\b[^.]{0,80}\b(?:cookies|consent)\b"
    r"|\b(?:wir|(?:diese|unsere) (?:web)?(?:seite|site))\b[^.]{0,40}\b(?:be)?nutz(?:t|en|e)?\b"
    r"[^.]{0,20}\bcookies\b|\bverwende[tn]\b[^.]{0,20}\bcookies\b"
    r"|\b(?:ce site|nous)\b[^.]{0,40}\butilis(?:e|ons)\b[^.]{0,30}\bcookies\b"
    r"|\b(?:este sitio|utilizamos|usamos)\b[^.]{0,40}\bcookies\b"
    r"|\b(?:questo sito|utilizziamo)\b[^.]{0,40}\bcookie\b",
    re.I,
)
_CONSENT_LINE_CHARS = 600
_LOGIN_TEXT = re.compile(
    r"(?:log ?in|sign ?in|register|subscribe|create (?:a|an) (?:free )?account) (?:now )?(?:to|and)"
    r" (?:continue|read|view|see|access|unlock)|to continue reading|(?:for|to) subscribers"
    r"|members[- ]only|subscriber[- ]only"
    r"|(?:you must|please) (?:be )?(?:log(?:ged)?|sign(?:ed)?) ?in"
    r"|already a (?:subscriber|member)|remaining (?:articles?|stories)"
    r"|unlock this (?:article|story)|weiterlesen mit|nur für abonnenten|jetzt anmelden"
    r"|réservé aux abonnés|solo para suscriptores",
    re.I,
)
_PAYWALL_DATA = re.compile(r'"isAccessibleForFree"\s*:\s*"?false', re.I)
_MISSING = re.compile(
    r"\b404\b|(?:page|file|article|document|site|content|url)[^.]{0,30}"
    r"(?:not (?:be )?found|does(?:n.t| not) exist|no longer (?:exists|available)|unavailable)"
    r"|\bnot found\b|seite (?:wurde )?nicht gefunden|(?:page|article) (?:introuvable|non trouv)"
    r"|página no (?:encontrada|existe)|pagina non trovata|nie znaleziono|pagina niet gevonden"
    r"|не найдена|ページが見つかり|页面不存在|找不到",
    re.I,
)
_NEEDS_SCRIPT = re.compile(
    r"(?:enable|requires?|need|turn on|activate|without|supports?)[^.]{0,40}java ?script"
    r"|java ?script[^.]{0,40}(?:enabled?|disabled|required|aktivier|activ|habilit)",
    re.I,
)


def is_challenge(title: str, markup: str) -> bool:
    """True when a page with an error status is a captcha or a browser check."""
    return bool(_CHALLENGE_TITLE.search(title) or _CHALLENGE_MARKUP.search(markup[:_MARKUP_CHARS]))


def without_consent_lines(text: str) -> str:
    """`text` without the sentences of a cookie banner among its first and last three lines."""
    lines = text.split("\n")
    edges = {*range(min(3, len(lines))), *range(max(0, len(lines) - 3), len(lines))}
    return "\n".join(
        line
        for number, line in enumerate(lines)
        if not (number in edges and len(line) <= _CONSENT_LINE_CHARS and _CONSENT_LINE.search(line))
    )


def wall_of(
    *, source: str, tree: LexborHTMLParser, title: str, text: str, noscript: str
) -> Readability | None:
    """What stands in the way of the page, None when nothing does.

    `source` is the page with its scripts, `tree` the parsed page without them, `text` its main
    text, `noscript` what it says to readers without scripts.
    """
    if len(text) > _WALL_CHARS:
        return None
    markup = source[:_MARKUP_CHARS]
    visible = _visible(tree)
    if len(visible) <= _WALL_CHARS and (
        _CHALLENGE_TEXT.search(visible)
        or (_CHALLENGE_TITLE.search(title) and len(visible) <= _TEASER_CHARS)
        or (_CHALLENGE_MARKUP.search(markup) and len(text) <= _TEASER_CHARS / 2)
    ):
        return Readability.CHALLENGED
    if _is_consent(text or visible, visible):
        return Readability.CONSENT_WALL
    heading = tree.css_first("h1")
    headings = f"{title}\n{heading.text() if heading is not None else ''}"
    if len(text) <= _ERROR_CHARS and _MISSING.search(headings):
        return Readability.SOFT_404
    if len(text) <= _TEASER_CHARS and (
        _LOGIN_TEXT.search(visible)
        or _PAYWALL_DATA.search(markup)
        or (tree.css_first("input[type=password i]") is not None and len(visible) <= _WALL_CHARS)
    ):
        return Readability.LOGIN_WALL
    if len(text) <= _TEASER_CHARS / 2 and (
        _NEEDS_SCRIPT.search(f"{noscript}\n{text}\n{visible[:_TEASER_CHARS]}")
        or (
            len(text) < _SHELL_CHARS
            and len(visible) < _TEASER_CHARS
            and "<script" in markup.lower()
        )
    ):
        return Readability.SCRIPT_ONLY
    return None


def _visible(tree: LexborHTMLParser) -> str:
    body = tree.body
    return " ".join(body.text(separator=" ").split()) if body is not None else ""


def _is_consent(text: str, visible: str) -> bool:
    if not _CONSENT_ACTION.search(visible):
        return False
    sentences = re.split(r"(?<=[.!?\n。])\s*", text)
    about = sum(len(sentence) for sentence in sentences if _CONSENT_WORDS.search(sentence))
    return about >= _CONSENT_SHARE * len(text) > 0
