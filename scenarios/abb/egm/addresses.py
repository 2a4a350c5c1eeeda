"""Network addresses in the arguments of `irb-twin egm`."""

import argparse
from collections.abc import Sequence

from twin.abb.egm.wire.channel import HOST, PORT, Address
from twin.base.errors import WrongUse

LAST_PORT = 65535

SIGNALLED = 128
"""Exit status after a signal, minus the number of the signal."""


def address(text: str, least: int = 1) -> Address:
    """Parse an address such as `127.0.0.1:6510` or `[::1]:6510`.

    Args:
        text: text of the argument.
        least: smallest valid port.

    Raises:
        ArgumentTypeError: the text is no address.
    """
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and least <= int(port) <= LAST_PORT):
        raise argparse.ArgumentTypeError(
            f"expected HOST:PORT with a port of {least} to {LAST_PORT}, as {HOST}:{PORT}, got {text!r}"
        )
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def any_port(text: str) -> Address:
    """Parse an address whose port may be 0 for a free port."""
    return address(text, 0)


def bind_address(text: str) -> Address:
    """Parse a local address; the port may be missing, or 0 for a free port.

    `::1` is a host without a port.
    """
    host_only = (
        ":" not in text or text.endswith(("]", ":")) or (text.count(":") > 1 and not text.startswith("["))
    )
    return address(f"{text}:0" if host_only else text, least=0)


def addresses(given: Sequence[Address], robots: Sequence[str]) -> list[Address]:
    """Return the client address of each robot: the given ones, then the ports after the last one.

    Raises:
        WrongUse: there are more addresses than robots, no ports are left, or two robots share an address.
    """
    if len(given) > len(robots):
        raise WrongUse(f"--to names {len(given)} addresses for {len(robots)} robot{'s' * (len(robots) > 1)}")
    found = given or [Address(HOST, PORT)]
    host, port = found[-1]
    found = [*found, *(Address(host, port + more) for more in range(1, len(robots) - len(found) + 1))]
    if found[-1].port > LAST_PORT:
        raise WrongUse(f"--to {found[-1]}: the largest port is {LAST_PORT}")
    for place, address in enumerate(found):
        if address in found[:place]:
            raise WrongUse(f"--to {address}: two robots cannot send to the same address")
    return found
