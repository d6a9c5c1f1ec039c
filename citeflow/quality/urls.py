"""Addresses as identities: the host of a URL, and one key for all spellings of one page."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

__all__ = ["canonical_url", "host_of"]

# Parameters that only say where a visitor came from. `ref` and `source` are not here: on code
# hosts and shops they select what is shown.
_TRACKING = re.compile(
    r"utm_\w+|mtm_\w+|pk_(?:campaign|kwd|source|medium)|hsa_\w+|_hs(?:enc|mi)|__hs\w+|"
    r"gclid|gclsrc|dclid|gbraid|wbraid|fbclid|msclkid|yclid|ysclid|twclid|ttclid|igshid|igsh|"
    r"li_fat_id|mc_cid|mc_eid|mkt_tok|_ga|_gl|_openstat|oly_\w+_id|vero_id|wickedid|"
    r"ref_src|ref_url|srsltid|amp",
    re.IGNORECASE,
)


def host_of(url: str) -> str:
    """The host name of `url`, lower case, without user, port and one leading `www.`.

    Returns `""` when there is none.
    """
    try:
        host = urlsplit(url.strip()).hostname or ""
    except ValueError:
        return ""
    return host.rstrip(".").removeprefix("www.")


def _ascii_host(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return host


def _path_key(path: str) -> str:
    # Decode once and encode again: %7E and ~, %c3 and %C3 become the same. An encoded slash
    # stays encoded, it is not a separator.
    parts = [quote(unquote(part), safe="~!$&'()*+,;=:@") for part in path.split("/")]
    while parts and parts[-1] == "":
        parts.pop()
    if len(parts) > 1 and parts[-1].lower() == "amp":
        parts.pop()
    return "/".join(parts)


def canonical_url(url: str) -> str:
    """A key equal for all spellings of one page; for comparison only, not an address.

    Ignored are scheme (http or https), `www.` and `amp.` in front of the host, default ports,
    user names, fragments, trailing slashes, AMP variants, tracking parameters and the order of
    the others. What has no host is its own key.
    """
    text = url.strip()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return text
    host = host_of(text)
    if not host:
        return text
    host = _ascii_host(host.removeprefix("amp."))
    default_port = {"http": 80, "https": 443}.get(parts.scheme.lower())
    if port is not None and port != default_port:
        host = f"{host}:{port}"
    query = sorted(
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if not _TRACKING.fullmatch(name)
    )
    # A fragment of the form #!/path selects the page on sites that render in the browser.
    fragment = f"#{parts.fragment}" if parts.fragment.startswith("!") else ""
    tail = f"?{urlencode(query)}" if query else ""
    return f"{host}{_path_key(parts.path)}{tail}{fragment}"
