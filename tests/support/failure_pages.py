"""Pages that are served with status 200 and are not what was asked for, each as sites write it."""

from __future__ import annotations

ARTICLE = "".join(
    f"<p>{sentence}</p>"
    for sentence in (
        "The harbour was dredged in the spring, and ships of a deeper draught have called since.",
        "Fishermen had asked for it for ten years, because the channel moved after each storm.",
        "The cost was shared by the town and the region, which expects more traffic in the north.",
        "Sand from the channel now covers the beach that had been washed away two years before.",
        "A second stage would widen the basin, but nobody has said where the money would be.",
        "Pilots say that the turn at the mole remains the hardest part of the whole approach.",
    )
)
BANNER = """<div id="cookie-banner" class="cc-window"><p>We use cookies and similar technologies to
personalise content and ads and to analyse our traffic. By clicking "Accept all" you consent to the
use of cookies by us and our 812 partners.</p><button>Accept all</button><button>Reject all</button>
</div>"""

PAGES: dict[str, dict[str, str]] = {
    "consent_wall": {
        "english": f"<html><head><title>Before you continue</title></head><body>{BANNER}"
        "<p>If you choose to accept all, we will also use cookies and data to show personalised "
        "ads. You can change your privacy settings at any time.</p></body></html>",
        "german": "<html lang=de><title>Die Zeitung</title><body><div><h2>Mit Werbung weiterlesen"
        "</h2><p>Wir und unsere Partner verarbeiten Daten mit Cookies, um personalisierte Werbung "
        "zu zeigen. Ihre Einwilligung können Sie jederzeit in den Datenschutz-Einstellungen "
        "widerrufen.</p><button>Alle akzeptieren</button><a>Ablehnen</a></div></body></html>",
        "french": "<html lang=fr><title>Le Journal</title><body><section><p>Avec votre accord, nos "
        "partenaires et nous utilisons des cookies pour stocker et accéder à des informations "
        "personnelles. Vous pouvez retirer votre consentement à tout moment dans notre politique "
        "de confidentialité.</p><button>Tout accepter</button><button>Refuser</button></section>",
    },
    "challenged": {
        "browser check": "<html><head><title>Just a moment...</title></head><body><h1>news.example"
        "</h1><p>Checking if the site connection is secure. This may take a few seconds.</p>"
        "<script src=/cdn-cgi/challenge-platform/h/b/orchestrate></script></body></html>",
        "captcha": "<html><title>Access to this page has been denied</title><body><p>Please verify "
        "you are a human. Press and hold the button below.</p><div id=px-captcha></div></body>",
        "traffic": "<html><title>Sorry...</title><body><p>Our systems have detected unusual "
        "traffic from your computer network. This page checks to see if it is really you sending "
        "the requests, and not a robot.</p><div class=g-recaptcha></div></body>",
        "silent": "<html><head><title>shop.example</title><script src='https://geo.captcha-delivery"
        ".com/x.js'></script></head><body><p id=cmsg>Please enable JS and disable any ad blocker"
        "</p></body></html>",
    },
    "login_wall": {
        "form": "<html><title>Sign in</title><body><h1>Welcome back</h1><form><p>Sign in to "
        "continue reading this page on our site.</p><input name=mail><input type=password>"
        "<button>Sign in</button></form></body></html>",
        "paywall": "<html><head><title>The budget, explained</title><script type="
        '"application/ld+json">{"@type": "NewsArticle", "isAccessibleForFree": false}</script>'
        "</head><body><h1>The budget, explained</h1><p>The minister presented the budget on "
        "Tuesday, and it came with surprises.</p><p>Subscribe to continue.</p></body></html>",
        "members": "<html><title>Forum</title><body><p>You must be logged in to view this content."
        " Please register or log in first.</p></body></html>",
    },
    "soft_404": {
        "english": "<html><title>Page not found - Example</title><body><h1>Oops!</h1><p>We can't "
        "find the page you are looking for. Try the search or go to our homepage instead.</p>",
        "number": "<html><title>Example</title><body><h1>Error 404</h1><p>Here are some of our "
        "latest stories that you may like to read instead of it.</p></body></html>",
        "german": "<html><title>Seite nicht gefunden</title><body><p>Leider gibt es unter dieser "
        "Adresse nichts mehr. Vielleicht hilft Ihnen die Suche weiter.</p></body></html>",
    },
    "script_only": {
        "react": "<html><head><title>App</title><script src=/main.js></script></head><body>"
        "<noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div>",
        "visible": "<html><title>App</title><body><p>This site requires JavaScript. Please turn on "
        "JavaScript in your browser.</p><script>start()</script></body></html>",
        "bare": "<html><title>Portal</title><body><div id=app><span>Loading</span></div><script>"
        "boot()</script></body></html>",
    },
    "empty": {
        "nothing": "",
        "blank": "<html><head><title>Blank</title></head><body></body></html>",
        "button": "<html><body><p>OK</p></body></html>",
    },
}

REAL: dict[str, str] = {
    "an article with a cookie banner": f"<html><title>T</title><body>{BANNER}<article>{ARTICLE}"
    "</article></body></html>",
    "an article about captchas": "<html><title>How captchas work</title><body><article>"
    f"{ARTICLE}<p>The reader has to verify you are a human, says the text, which is why it is a "
    f"captcha.</p>{ARTICLE.replace('harbour', 'canal')}{ARTICLE.replace('the', 'that')}"
    "</article></body></html>",
    "an article about cookies": "<html><title>Cookies</title><body><article>"
    + "<p>A cookie is a small piece of data that a server asks the browser to keep and to send "
    "back later. The first ones were made for a shopping basket.</p>"
    + ARTICLE * 3
    + "</article></body></html>",
    "an article with a log-in form": f"<html><title>T</title><body><form><input type=password>"
    f"<p>Log in to continue</p></form><article>{ARTICLE}</article></body></html>",
    "a short page": "<html><title>Hours</title><body><p>Closed on Mondays, open until nine on "
    "all other days.</p></body></html>",
}
