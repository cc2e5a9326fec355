"""Public addresses, the only ones that webhooks may be delivered to."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from pipeline.webhooks.addresses import is_public, is_this_machine, literal


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("224.0.0.1", False),
        ("240.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("fe80::1", False),
        ("fc00::1", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::a00:1", False),
        ("64:ff9b::5db8:d822", True),
        ("2002:7f00:1::1", False),
        ("2002:a00:1::", False),
        ("168.63.129.16", False),
        ("192.0.0.192", False),
        ("192.88.99.1", False),
        ("fec0::1", False),
        ("3fff::1", False),
        ("::ffff:168.63.129.16", False),
    ],
)
def test_only_addresses_of_the_internet_are_public(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("127\uff610\u30020\uff0e1", "127.0.0.1"),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
    ],
)
def test_an_address_is_known_in_each_form_that_a_look_up_takes(host: str, address: str) -> None:
    assert literal(host) == ip_address(address)


@pytest.mark.parametrize("host", ["example.com", "localhost", "1.2.3.4.5", "127.1 x", "0xfg", ""])
def test_a_name_is_no_address(host: str) -> None:
    assert literal(host) is None


@pytest.mark.parametrize(
    ("host", "this"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("memlane.localhost", True),
        ("localhost.example.com", False),
        ("mylocalhost", False),
    ],
)
def test_localhost_and_names_below_it_are_this_machine(host: str, this: bool) -> None:
    assert is_this_machine(host) is this
