"""Addresses as the commands of `irb-twin egm` are given them."""

import argparse
from collections.abc import Sequence

from scenarios.cli.arguments import WrongUse
from twin.egm.wire.channel import HOST, PORT, Address

LAST_PORT = 65535

SIGNALLED = 128
"""And its number: the exit status after a signal."""


def address(text: str, least: int = 1) -> Address:
    """Read `127.0.0.1:6510`, `[::1]:6510`.

    Raises:
        ArgumentTypeError: it is none.
    """
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and least <= int(port) <= LAST_PORT):
        raise argparse.ArgumentTypeError(
            f"expected HOST:PORT with a port of {least} to {LAST_PORT}, as {HOST}:{PORT}, got {text!r}"
        )
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def any_port(text: str) -> Address:
    """Read an address in which the port may be 0, for any that is free."""
    return address(text, 0)


def own_address(text: str) -> Address:
    """Read an address whose port may be missing, or 0 for any; `::1` is an address alone."""
    alone = ":" not in text or text.endswith(("]", ":")) or (text.count(":") > 1 and not text.startswith("["))
    return address(f"{text}:0" if alone else text, least=0)


def addresses(given: Sequence[Address], robots: Sequence[str]) -> list[Address]:
    """Where each robot sends: as given, then to the ports after the last one.

    Raises:
        WrongUse: there are more addresses than robots, no more ports, or two robots would send to one client.
    """
    if len(given) > len(robots):
        raise WrongUse(f"--to names {len(given)} addresses for {len(robots)} robot{'s' * (len(robots) > 1)}")
    found = given or [Address(HOST, PORT)]
    host, port = found[-1]
    found = [*found, *(Address(host, port + more) for more in range(1, len(robots) - len(found) + 1))]
    if found[-1].port > LAST_PORT:
        raise WrongUse(f"--to {found[-1]}: the last port is {LAST_PORT}")
    for place, address in enumerate(found):
        if address in found[:place]:
            raise WrongUse(f"--to {address}: two robots cannot send to one client")
    return found
