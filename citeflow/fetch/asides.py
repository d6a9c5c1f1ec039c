"""Elements whose name says that they are not the text of a page: sidebars, comments, shares."""

from __future__ import annotations

import bisect
import itertools

__all__ = ["named_shares"]

# Parts of the names that sites give to what is not their text.
_NAMED_ASIDE = (
    "share social related sidebar footer breadcrumb newsletter subscri promo cookie consent byline "
    "author tag-list tags widget popup modal advert sponsor caption recommend more- most- rating "
    "login signup disclaimer copyright trending toolbar pager pagination prevnext nav- navbar "
    "postmeta post-meta entry-meta article-meta bio timestamp teaser"
)
_NAMED_COMMENTS = "comment disqus respond kommentar replies"


# The shares of the page's paragraphs from which a name is a mistake: a body of class "no-sidebar"
# is not a sidebar. Comments may outweigh what they are about.
_ASIDE_SHARE, _COMMENTS_SHARE = 0.25, 0.8
_NAMED = tuple(
    (part, share)
    for parts, share in ((_NAMED_ASIDE, _ASIDE_SHARE), (_NAMED_COMMENTS, _COMMENTS_SHARE))
    for part in parts.split()
)


def named_shares(attributes: list[dict[str, str | None]]) -> dict[int, float]:
    """The shares of those elements, by their place in the list, that are named as no text.

    All names are searched at once: a hundred searches for a whole page instead of for each element.
    """
    lines = [
        f"{names.get('class')} {names.get('id')}".replace("\n", " ").lower() for names in attributes
    ]
    starts = list(itertools.accumulate((len(line) + 1 for line in lines), initial=0))
    joined = "\n".join(lines)
    shares: dict[int, float] = {}
    for part, share in _NAMED:
        found = joined.find(part)
        while found >= 0:
            number = bisect.bisect_right(starts, found) - 1
            shares[number] = max(share, shares.get(number, 0.0))
            found = joined.find(part, starts[number + 1])
    return shares
