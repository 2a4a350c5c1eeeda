"""Control laws: callables ``(state, reference) -> tau`` that know a robot model and nothing of the engine.

The same law runs against PyBullet, against the analytic plant, on a recorded log, or on a real arm.

>>> controller = controllers.make("computed_torque", robot, bandwidth=20.0)
>>> tau = controller(state, reference)

Wherever a name is taken, a law of your own will do: `./my.py:Law`, `package.module:Law`, or what an installed
package announces; see `controllers.plugin_controllers`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

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
    """The class of our control law called `name`.

    Raises:
        UnknownNameError: if there is none; the message lists those that exist.
    """
    if name not in _LAWS:
        raise UnknownNameError(f"unknown controller {name!r}: known are {', '.join(NAMES)}")
    module, attribute = _LAWS[name]
    return getattr(import_module(module), attribute)


def plugin_names() -> tuple[str, ...]:
    """The control laws that installed packages announce, but for those with a name of ours."""
    from controllers import plugin_controllers

    return tuple(
        name for name in plugin_controllers.plugin_entries(plugin_controllers.GROUP) if name not in NAMES
    )


def require_known(name: str) -> None:
    """Check the name of a control law, ours or not, without loading it.

    Raises:
        UnknownNameError: there is no such name or file; the message says what would do.
    """
    from controllers import plugin_controllers

    plugin_controllers.require_known(name, NAMES)


def title(name: str) -> str:
    """What the control law of that name is, in a line; of ours read from the source, which compiles nothing.

    Raises:
        UnknownNameError, PluginError: there is none, or it does not load.
    """
    if name not in _LAWS:
        return (_found(name).__doc__ or "").strip().partition("\n")[0]
    module, attribute = _LAWS[name]
    source = Path(__file__).with_name(f"{module.partition('.')[2]}.py").read_text(encoding="utf-8")
    classes = (item for item in ast.parse(source).body if isinstance(item, ast.ClassDef))
    docs = {item.name: ast.get_docstring(item) or "" for item in classes}
    return docs[attribute].partition("\n")[0]


def label(name: str) -> str:
    """A short text for tables and names of files: `./my.py:Law` -> `Law`."""
    from controllers import plugin_controllers

    return name if name in NAMES else plugin_controllers.label(name)


def labels(names: Iterable[str]) -> dict[str, str]:
    """Labels of several control laws; those that would share one get their file or module before it.

    Args:
        names: as `make` takes them.
    """
    from controllers import plugin_controllers

    names = list(dict.fromkeys(names))
    result = {name: label(name) for name in names}
    shared = [name for name in names if list(result.values()).count(result[name]) > 1 and name not in NAMES]
    for name in shared:
        place = Path(plugin_controllers.parts(name)[0]).name.removesuffix(".py")
        result[name] = f"{place}.{result[name]}"
    for number, name in enumerate(shared, start=1):  # one file name in two folders
        if list(result.values()).count(result[name]) > 1:
            result[name] = f"{result[name]}-{number}"
    return result


def settings(name: str) -> tuple[str, ...]:
    """The settings of a control law, which `make` takes as keywords; `bandwidth` and `period` if it has them.

    Raises:
        UnknownNameError, PluginError: there is no such law, or it does not load.
    """
    from controllers import plugin_controllers

    return plugin_controllers.settings(_found(name))


def defaults(name: str) -> dict[str, Any]:
    """The defaults of the settings of a control law; `None` is one that the law derives.

    Raises:
        UnknownNameError, PluginError: there is no such law, or it does not load.
    """
    from controllers import plugin_controllers

    return plugin_controllers.defaults(_found(name))


def _found(name: str) -> Any:
    """The class of a law of ours, or what a name of another stands for."""
    from controllers import plugin_controllers

    plugin_controllers.require_known(name, NAMES)
    return law(name) if name in NAMES else plugin_controllers.found(name)


def make(
    name: str, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3, **settings: Any
) -> Controller:
    """Make the control law called `name` for a robot.

    Args:
        name: one of `NAMES`, or that of another law, see `controllers.plugin_controllers`.
        robot: the controller's own model of the robot, its drives included; the plant may differ from it.
        bandwidth: omega, the place of the closed loop's poles, scalar or (n,), in [rad/s].
        period: time between two calls, in [s], for laws that integrate or foresee friction.
        settings: of that law, as Kp of `pd`, see `settings`.

    Raises:
        UnknownNameError: if there is no such law.
        PluginError: a law that is not ours does not load or cannot be made; the law has no such setting.
        ValueError: if the bandwidth, the period or a setting is not what it must be.
    """
    from controllers import plugin_controllers

    return plugin_controllers.make(
        _found(name), name, robot, {"bandwidth": bandwidth, "period": period}, settings
    )
