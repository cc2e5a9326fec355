"""Which addresses may be written to from here: only those that anybody on the internet could."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# RFC 6052: an IPv4 address in the last 32 bits, reached through a gateway.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


# What Python's `is_global` of some releases lets pass: providers' own services, relays that were
# given up, site-local and documentation addresses.
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
    """False for private, loopback, link-local, shared, reserved and multicast ones, and for IPv6
    addresses that lead to such an IPv4 one.
    """
    if isinstance(address, ipaddress.IPv6Address) and (inner := _inside(address)) is not None:
        return is_public(inner)
    if any(address in network for network in CLOSED):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _inside(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one carries."""
    if address in NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)


def literal(host: str) -> Address | None:
    """The address that a URL's host is, or None where it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host of that name or address."""
    address = literal(host)
    return host == "localhost" or (address is not None and address.is_loopback)
