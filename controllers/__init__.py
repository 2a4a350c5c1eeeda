"""Control laws: callables ``(state, reference) -> tau`` that know a robot model and nothing of the engine.

The same law runs against PyBullet, against the analytic plant, on a recorded log, or on a real arm.

>>> controller = controllers.make("computed_torque", robot, bandwidth=20.0)
>>> tau = controller(state, reference)
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from twin.errors import UnknownNameError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from twin.robot.robot import Robot
    from twin.trajectories.sampling import Reference, State

_LAWS = {
    "pd": ("controllers.pd", "PD"),
    "pd_gravity": ("controllers.pd", "PDGravity"),
    "pid": ("controllers.pid", "PID"),
    "cascade": ("controllers.cascade", "Cascade"),
    "computed_torque": ("controllers.computed_torque", "ComputedTorque"),
}

NAMES: tuple[str, ...] = tuple(_LAWS)
"""The control laws that `make` knows, from the simplest to the one with the whole model."""


class Controller(Protocol):
    """What a control law looks like from outside."""

    name: str

    def __call__(self, state: State, reference: Reference) -> NDArray:
        """Demanded joint torques.

        Args:
            state: measured: time t in [s], positions q: (n,) in [rad], velocities qd: (n,) in [rad/s].
            reference: wanted: q: (n,) in [rad], qd: (n,) in [rad/s], qdd: (n,) in [rad/s^2].

        Returns:
            tau: (n,) in [N m], a new array, before the drive limits it.
        """
        ...

    def reset(self) -> None:
        """Forget the past, so that the next run is the same as the first."""
        ...


def law(name: str) -> type:
    """The class of the control law called `name`.

    Raises:
        UnknownNameError: if there is none; the message lists those that exist.
    """
    if name not in _LAWS:
        raise UnknownNameError(f"unknown controller {name!r}: known are {', '.join(NAMES)}")
    module, attribute = _LAWS[name]
    return getattr(import_module(module), attribute)


def title(name: str) -> str:
    """What the control law of that name is, in a line; read from its source, which starts no compiler."""
    if name not in _LAWS:
        return (law(name).__doc__ or "").partition("\n")[0]
    module, attribute = _LAWS[name]
    source = Path(__file__).with_name(f"{module.partition('.')[2]}.py").read_text(encoding="utf-8")
    classes = (item for item in ast.parse(source).body if isinstance(item, ast.ClassDef))
    docs = {item.name: ast.get_docstring(item) or "" for item in classes}
    return docs[attribute].partition("\n")[0]


def make(name: str, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3) -> Controller:
    """Make the control law called `name` for a robot.

    Args:
        name: one of `NAMES`.
        robot: the controller's own model of the robot, its drives included; the plant may differ from it.
        bandwidth: omega, the place of the closed loop's poles, scalar or (n,), in [rad/s].
        period: time between two calls, in [s], for laws that integrate or foresee friction.

    Raises:
        UnknownNameError: if there is no such law.
        ValueError: if the bandwidth or the period is not positive and finite.
    """
    return law(name)(robot, bandwidth=bandwidth, period=period)
