"""Which IP addresses a page may be read from: globally routable unicast ones, nothing else.

The judgement is `ipaddress`'s own, tightened where the registries (IANA special-purpose address
registries for IPv4 and IPv6) have ranges that some Python versions still call global, and applied
again to every IPv4 address that an IPv6 address carries inside it.
"""

from __future__ import annotations

import ipaddress

__all__ = ["embedded_ipv4", "is_public_address"]

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

# Everything IANA has handed out as global unicast IPv6 lies here; what lies outside is special,
# reserved, local or unassigned (fec0::/10, ::/96, 100::/64, 5f00::/16, 64:ff9b:1::/48 ...).
_IPV6_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")

_REFUSED_IPV4 = (
    ipaddress.IPv4Network("192.0.0.0/24"),  # protocol assignments; a cloud's metadata is here
    ipaddress.IPv4Network("192.88.99.0/24"),  # 6to4 relays, withdrawn: leads anywhere
    # Answers only inside one cloud, where it is the machine's own control endpoint, although the
    # address is from a public range.
    ipaddress.IPv4Network("168.63.129.16/32"),
)
_REFUSED_IPV6 = (
    ipaddress.IPv6Network("2001::/23"),  # protocol assignments: Teredo, ORCHID, benchmarking
    ipaddress.IPv6Network("2001:db8::/32"),  # documentation
    ipaddress.IPv6Network("3fff::/20"),  # documentation
)

_V4_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
_V4_COMPATIBLE = ipaddress.IPv6Network("::/96")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")
_TEREDO = ipaddress.IPv6Network("2001::/32")


def embedded_ipv4(address: ipaddress.IPv6Address) -> tuple[ipaddress.IPv4Address, ...]:
    """The IPv4 addresses that a packet to this IPv6 address may end up at.

    RFC 4291 (mapped and compatible), RFC 6052 (NAT64), RFC 3056 (6to4), RFC 4380 (Teredo: the
    server, and the client with its bits inverted).
    """
    number = int(address)
    if address in _V4_MAPPED or address in _NAT64 or address in _V4_COMPATIBLE:
        return (ipaddress.IPv4Address(number & 0xFFFFFFFF),)
    if address in _SIX_TO_FOUR:
        return (ipaddress.IPv4Address((number >> 80) & 0xFFFFFFFF),)
    if address in _TEREDO:
        server = ipaddress.IPv4Address((number >> 64) & 0xFFFFFFFF)
        return (server, ipaddress.IPv4Address(~number & 0xFFFFFFFF))
    return ()


def is_public_address(address: str | IPAddress) -> bool:
    """True when `address` is a globally routable unicast address.

    False for anything that cannot be parsed, for an address with a zone, and for an IPv6 address
    that carries an IPv4 address which is not public. Mapped, NAT64 and 6to4 addresses are as
    public as the IPv4 address in them; Teredo and IPv4-compatible ones never are.
    """
    if isinstance(address, str):
        try:
            address = ipaddress.ip_address(address)
        except ValueError:
            return False
    if isinstance(address, ipaddress.IPv4Address):
        return _is_public_ipv4(address)
    if address.scope_id is not None:
        return False
    if not all(_is_public_ipv4(inner) for inner in embedded_ipv4(address)):
        return False
    if address in _V4_MAPPED or address in _NAT64 or address in _SIX_TO_FOUR:
        return True
    return (
        address in _IPV6_GLOBAL_UNICAST
        and address.is_global
        and not any(address in network for network in _REFUSED_IPV6)
    )


def _is_public_ipv4(address: ipaddress.IPv4Address) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in _REFUSED_IPV4)
    )
