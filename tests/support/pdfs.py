"""PDFs written by hand: only what the tests need of the format."""

from __future__ import annotations

import zlib
from collections.abc import Sequence


def pdf(
    pages: Sequence[Sequence[str]],
    *,
    info: str = "",
    encrypted: bool = False,
    image: bool = False,
    content: bytes | None = None,
) -> bytes:
    """A PDF with a page per sequence of lines.

    `image` puts a picture on each page; `content` replaces the drawing instructions of all pages
    (deflated).
    """
    objects: list[bytes] = [b"", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    image_number = 0
    if image:
        objects.append(
            b"<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray"
            b"/BitsPerComponent 8/Length 1>>stream\n\x80\nendstream"
        )
        image_number = len(objects)
    kids = []
    for lines in pages:
        drawn = b"q 500 0 0 700 50 50 cm /I Do Q " if image else b""
        for number, line in enumerate(lines):
            text = line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
            drawn += f"BT /F 10 Tf 50 {780 - 14 * number} Td ({text}) Tj ET ".encode("latin-1")
        if content is not None:
            drawn = content
        packed = zlib.compress(drawn, 9)
        objects.append(
            b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed)
        )
        resources = b"/Font<</F 3 0 R>>"
        if image:
            resources += b"/XObject<</I %d 0 R>>" % image_number
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %d 0 R/Resources<<%s>>>>"
            % (len(objects), resources)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[0] = b"<</Type/Catalog/Pages 2 0 R>>"
    objects[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(kids), b" ".join(kids))
    trailer = b"/Root 1 0 R"
    if info:
        objects.append(f"<<{info}>>".encode("latin-1"))
        trailer += b"/Info %d 0 R" % len(objects)
    if encrypted:
        objects.append(b"<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>" % (b"ab" * 32, b"cd" * 32))
        trailer += b"/ID[<00><00>]/Encrypt %d 0 R" % len(objects)
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<</Size %d%s>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, trailer, start)
    return bytes(out)
