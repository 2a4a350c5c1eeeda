"""Excitations that were optimised once and are kept in a file: that of a robot lies beside its own file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from twin.arrays import Floats
from twin.atomic_file import drafted
from twin.errors import IdentificationError
from twin.identification.fourier_motion import FourierMotion
from twin.robot.robot import Robot

NAME = "excitation.toml"


def kept_excitation(robot: Robot) -> FourierMotion | None:
    """The motion in `excitation.toml` beside the file that the robot was loaded from; `None` without one.

    Raises:
        IdentificationError: the file is no such motion, or one of another number of joints.
    """
    path = None if robot.file is None else robot.file.parent / NAME
    if path is None or not path.is_file():
        return None
    motion = read_excitation(path)
    if len(motion.start) != robot.n:
        raise IdentificationError(
            f"{path}: this is a motion of {len(motion.start)} joints, robot {robot.name!r} has {robot.n}"
        )
    return motion


def write_excitation(motion: FourierMotion, path: str | Path) -> None:
    """Write one period of a motion as TOML, every number to its last bit.

    Raises:
        OSError: the file cannot be written.
    """
    lines = [
        "# A motion that tells the dynamic parameters of the robot whose file is beside it.",
        "# Speeds are sums of a cos(k w t) + b sin(k w t), k = 1, 2 ..., w = 2 pi / period: a row a joint,",
        "# in rad/s. The period is in s, the start in rad.",
        "",
        f"period = {motion.period!r}",
        f"start = {motion.start.tolist()!r}",
        *(line for name in ("a", "b") for line in (f"{name} = [", *_rows(getattr(motion, name)), "]")),
        "",
    ]
    with drafted(path) as draft:
        draft.write_text("\n".join(lines), encoding="utf-8")


def _rows(array: Floats) -> list[str]:
    return [f"    {row!r}," for row in array.tolist()]


def read_excitation(path: str | Path) -> FourierMotion:
    """The motion that `write_excitation` wrote.

    Raises:
        IdentificationError: the file is no such motion.
        OSError: the file cannot be read.
    """
    from urdf.schema import tomllib

    try:
        told = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        arrays = [np.asarray(told[name], dtype=np.float64) for name in ("start", "a", "b")]
        return FourierMotion(*arrays, period=float(told["period"]))
    except KeyError as error:
        raise IdentificationError(f"{path}: there is no {error.args[0]!r} in it") from error
    except (ValueError, TypeError) as error:
        raise IdentificationError(f"{path}: {error}") from error
