"""Which addresses are public."""

# ruff: noqa: SIM905 - addresses are read best in lines

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.handlers.network.addresses import PUBLIC, kind_of, read_address
from tests.unit.handlers.network.tricks import PLAIN_IPV4, PLAIN_IPV6

PUBLIC_ADDRESSES = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255
128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255
192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0
223.255.255.255 168.63.129.15 168.63.129.17
2000::1 2001:200::1 2001:4860:4860::8888 2001:db7::1 2001:db9::1 2003::1 2606:4700:4700::1111
2a00:1450:4001::1 3ffe::1 64:ff9b::5db8:d822 ::ffff:93.184.216.34 2606:4700::5efe:93.184.216.34
""".split()


@pytest.mark.req("SEQ-HND-4")
@pytest.mark.parametrize("text", PUBLIC_ADDRESSES)
def test_an_address_of_the_internet_is_public(text):
    assert kind_of(read_address(text)) == PUBLIC


@pytest.mark.req("SEQ-HND-4")
@pytest.mark.parametrize("text", [*PLAIN_IPV4, *PLAIN_IPV6])
def test_any_other_address_is_not(text):
    assert kind_of(read_address(text)) != PUBLIC


@given(st.ip_addresses())
def test_what_python_knows_as_private_is_never_public_here(address):
    address = read_address(str(address))
    if kind_of(address) == PUBLIC:
        relay = address in IPv6Network("64:ff9b::/96") if address.version == 6 else False
        assert relay or address.is_global


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_form_is_judged_like_itself(address):
    mapped = read_address(f"::ffff:{address}")
    assert mapped == address
    nat64 = ip_address(int(ip_address("64:ff9b::")) + int(address))
    assert kind_of(nat64) == kind_of(address)


def test_a_zone_makes_any_address_one_of_the_own_link():
    assert kind_of(read_address("2606:4700::1%eth0")) == "link-local"


def test_the_ends_of_a_range_are_in_it():
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"):
        network = IPv4Network(text)
        assert kind_of(network[0]) == kind_of(network[-1]) == "private"
        assert kind_of(IPv4Address(int(network[-1]) + 1)) == PUBLIC
