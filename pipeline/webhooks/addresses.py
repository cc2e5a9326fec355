"""Addresses that webhooks may be sent to: only those that are public on the internet."""

from __future__ import annotations

import ipaddress
import re
import socket

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# RFC 6052: the last 32 bits are an IPv4 address that is reached through a gateway.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


# Characters that names in other scripts have in place of a dot (RFC 3490).
DOTS = str.maketrans({"\u3002": ".", "\uff0e": ".", "\uff61": "."})
NUMBERS = re.compile(r"[0-9a-fx.]+", re.IGNORECASE)

# Addresses that `is_global` of some Python releases takes as public: internal services of cloud
# providers, deprecated relays, site-local and documentation addresses.
CLOSED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "168.63.129.16/32",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "fec0::/10",
        "3fff::/20",
    )
)


def is_public(address: Address) -> bool:
    """Tell if an address is public.

    False for private, loopback, link-local, shared, reserved and multicast addresses, and for IPv6
    addresses that contain such an IPv4 address.
    """
    if isinstance(address, ipaddress.IPv6Address) and (inner := _inside(address)) is not None:
        return is_public(inner)
    if any(address in network for network in CLOSED):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _inside(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that an IPv6 address contains, or None."""
    if address in NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)


def literal(host: str) -> Address | None:
    """Return the host of a URL as an address; None if it is a name.

    Look-ups of names also take an IPv4 address of fewer parts, octal or hexadecimal: `127.1`,
    `0x7f.1`, `2130706433`.
    """
    dotted = host.translate(DOTS).rstrip(".")
    try:
        return ipaddress.ip_address(dotted)
    except ValueError:
        pass
    if not NUMBERS.fullmatch(dotted):  # inet_aton ignores what follows an address
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(dotted))
    except OSError:
        return None


def is_this_machine(host: str) -> bool:
    """Tell if a name always leads to the machine that looks it up (RFC 6761)."""
    name = host.lower().translate(DOTS).rstrip(".")
    return name == "localhost" or name.endswith(".localhost")


def is_loopback(host: str) -> bool:
    """Tell if only this machine can reach the host, given as a name or an address."""
    address = literal(host)
    return host == "localhost" or (address is not None and address.is_loopback)
