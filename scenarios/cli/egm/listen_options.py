"""What `egm mirror` and `egm record` are told alike: the model, where the robot sends, and for how long."""

from __future__ import annotations

import argparse
import ipaddress
from typing import TYPE_CHECKING, Any

from scenarios.cli.egm.serve_options import HOST, PORT, Address, address, own_address
from scenarios.cli.output import complain
from twin.drives.drives import MODES

if TYPE_CHECKING:
    from twin.robot.robot import Robot

MOUNTINGS = ("floor", "wall", "inverted")


def add_robot(group: Any, drives: str) -> None:
    """Offer what the model is."""
    group.add_argument(
        "--robot", default="irb140", metavar="NAME",
        help="the robot that sends: its name, or the path of its robot.toml or URDF (default irb140)",
    )  # fmt: skip
    group.add_argument(
        "--mounting", default="floor", choices=MOUNTINGS, help="how its base is mounted (default floor)"
    )
    group.add_argument(
        "--payload", metavar="BODY",
        help="what the model's flange carries, mass,x,y,z,Ixx,Iyy,Izz,Ixy,Ixz,Iyz: kg, m, kg m^2; or "
        "mass,x,y,z; or mass (default nothing)",
    )  # fmt: skip
    group.add_argument(
        "--drives", default=drives, choices=MODES[:2],
        help="what drives the model has: ideal, without friction and rotors, or rigid, with them "
        f"(default {drives})",
    )  # fmt: skip


def add_wire(group: Any) -> None:
    """Offer where the robot sends, and its client listens."""
    group.add_argument(
        "--listen", default=Address(HOST, PORT), type=listening, metavar="HOST:PORT",
        help="address of this machine that the robot sends to; 0.0.0.0 is every one of them (default "
        f"{HOST}:{PORT}, which no other machine reaches); port 0 takes a free one",
    )  # fmt: skip
    group.add_argument(
        "--forward", type=address, metavar="HOST:PORT",
        help="pass the robot's messages on to its client there, and the client's answers back "
        "(default: only listen); the robot loses its client when this command ends",
    )  # fmt: skip
    group.add_argument(
        "--bind", type=own_address, metavar="HOST[:PORT]",
        help="own address towards a client on another machine, at which it answers",
    )  # fmt: skip
    group.add_argument(
        "--torque-age", type=float, default=0.5, metavar="CYCLES",
        help="how much older reported torques are than the angles beside them, 0 to 1 cycles (default 0.5: "
        "means over the cycle before, as `egm serve` sends them)",
    )  # fmt: skip
    group.add_argument(
        "--wait", type=float, default=60.0, metavar="SECONDS",
        help="give up with status 2 if no robot is heard for so long (default 60)",
    )  # fmt: skip


def add_duration(group: Any, otherwise: str) -> None:
    """Offer how long."""
    group.add_argument(
        "--duration", type=float, metavar="SECONDS",
        help=f"of the robot's time, then end, also when it falls silent (default: {otherwise})",
    )  # fmt: skip


def listening(text: str) -> Address:
    """An address in which the port may be 0, for any that is free."""
    return address(text, 0)


def check(given: argparse.Namespace) -> None:
    """Check the numbers, and say where other machines can reach this one.

    Raises:
        ValueError: a time is not above 0 and finite.
    """
    from scenarios.base import positive

    positive(given.wait, "--wait", "s")
    if given.duration is not None:
        positive(given.duration, "--duration", "s")
    if not _is_loopback(given.listen.host):
        complain(f"listening at {given.listen}, which other machines can send to")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def model(given: argparse.Namespace) -> Robot:
    """The robot that was described."""
    import twin
    from twin.robot.flange_load import payload_of

    robot = twin.load(given.robot).mounted(given.mounting).with_drives(given.drives)
    return robot if given.payload is None else robot.with_payload(payload_of(given.payload))
