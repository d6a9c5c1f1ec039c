"""Which addresses are public."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.fetch import is_public_address
from citeflow.fetch.addresses import embedded_ipv4

REFUSED = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.0.1",
    "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192",
    "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::7f00:1", "::8.8.8.8", "::ffff:10.0.0.1", "::ffff:127.0.0.1",
    "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1",
    "2001::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:2::1", "2001:10::1", "2001:20::1",
    "2001:db8::1", "2002:7f00:1::", "2002:c0a8:0101::1", "2002:a9fe:a9fe::", "3fff::1", "5f00::1",
    "4000::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "2606:4700:4700::1111%eth0",
    "fec0::1", "ff00::1", "ff02::1",
    "", "localhost", "1.1.1", "0x7f.0.0.1", "2130706433", "1.1.1.1 ", "1.1.1.1:80", "[::1]",
    "01.1.1.1",
]  # fmt: skip
ALLOWED = [
    "1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.1", "100.128.0.1",
    "192.0.1.1", "223.255.255.254", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e",
    "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1",
]  # fmt: skip


@pytest.mark.parametrize("address", REFUSED)
def test_special_addresses_are_not_public(address: str) -> None:
    """Local, reserved, multicast, documentation, tunnelled-private and unparsable: refused."""
    assert is_public_address(address) is False


@pytest.mark.parametrize("address", ALLOWED)
def test_ordinary_addresses_are_public(address: str) -> None:
    """Addresses of ordinary servers pass, also translated ones."""
    assert is_public_address(address) is True


@given(st.ip_addresses(v=4))
def test_ipv4_agrees_with_the_registry(address: ipaddress.IPv4Address) -> None:
    """Nothing that ipaddress calls special is public."""
    special = (
        address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
        or address.is_reserved or address.is_unspecified
    )  # fmt: skip
    assert not (special and is_public_address(address))
    assert is_public_address(address) == is_public_address(str(address))


@given(st.ip_addresses(v=6))
def test_ipv6_outside_global_unicast_is_refused(address: ipaddress.IPv6Address) -> None:
    """An IPv6 address is public only in 2000::/3 or as a carrier of a public IPv4 address."""
    if is_public_address(address):
        carried = embedded_ipv4(address)
        assert carried or address in ipaddress.IPv6Network("2000::/3")
        assert all(is_public_address(inner) for inner in carried)


@given(st.ip_addresses(v=4))
def test_an_address_hidden_in_another_is_judged(inner: ipaddress.IPv4Address) -> None:
    """Each way to carry an IPv4 address in an IPv6 one is decoded to that address."""
    number = int(inner)
    mapped = ipaddress.IPv6Address((0xFFFF << 32) | number)
    nat64 = ipaddress.IPv6Address((0x64FF9B << 96) | number)
    six_to_four = ipaddress.IPv6Address((0x2002 << 112) | (number << 80) | 1)
    teredo = ipaddress.IPv6Address((0x20010000 << 96) | (0x08080808 << 64) | (~number & 0xFFFFFFFF))
    compatible = ipaddress.IPv6Address(number)
    for carrier in (mapped, nat64, six_to_four):
        assert embedded_ipv4(carrier) == (inner,)
        assert is_public_address(carrier) == is_public_address(inner)
    for carrier in (teredo, compatible):
        assert embedded_ipv4(carrier)[-1] == inner
        assert not is_public_address(carrier)


@given(st.text(max_size=50))
def test_any_text_gets_an_answer(text: str) -> None:
    """No text makes the judgement fail."""
    assert is_public_address(text) in (True, False)
