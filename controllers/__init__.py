"""Controllers: callables ``(state, reference) -> tau`` that know a robot model, but nothing of the engine.

The same controller runs against PyBullet, against the analytic plant, on a recorded log, or on a real arm.

>>> controller = controllers.make("computed_torque", robot, bandwidth=20.0)
>>> tau = controller(state, reference)

A user's controller is named `./my.py:Law` or `package.module:Law`, or by an installed package; see
`controllers.plugin_controllers`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import lazy_loader

from controllers import plugin_controllers
from twin.base.errors import UnknownNameError, near

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from twin.physics.robot.robot import Robot
    from twin.physics.trajectories.sampling import Reference, State

_LAWS = {
    "pd": ("controllers.pid", "PD"),
    "pd_gravity": ("controllers.pid", "PDGravity"),
    "pid": ("controllers.pid", "PID"),
    "cascade": ("controllers.cascade", "Cascade"),
    "computed_torque": ("controllers.computed_torque", "ComputedTorque"),
    "dob": ("controllers.computed_torque", "DisturbanceObserver"),
    "adaptive": ("controllers.adaptive", "Adaptive"),
    "elastic_inverse": ("controllers.elastic_inverse", "ElasticInverse"),
    "impedance": ("controllers.force", "Impedance"),
    "admittance": ("controllers.force", "Admittance"),
    "hybrid": ("controllers.force", "HybridForce"),
}

_MODULES = {"gains", "hybrid", *(module.partition(".")[2] for module, _ in _LAWS.values())}
__getattr__, *_ = lazy_loader.attach(__name__, _MODULES)

NAMES: tuple[str, ...] = tuple(_LAWS)
"""Names of the built-in controllers, from the simplest to those that observe, adapt, foresee and yield."""


WITH_SPRINGS = ("elastic_inverse",)
"""Names of the controllers that use the springs of their model; the others treat them as rigid."""


class Controller(Protocol):
    """Interface of a controller."""

    name: str

    def __call__(self, state: State, reference: Reference) -> NDArray:
        """Return the demanded joint torques.

        Args:
            state: measured time t in [s], positions q: (n,) in [rad], velocities qd: (n,) in [rad/s].
            reference: desired q: (n,) in [rad], qd: (n,) in [rad/s], qdd: (n,) in [rad/s^2].

        Returns:
            tau: (n,) in [N m], a new array, not limited to the drive's torque.
        """
        ...

    def reset(self) -> None:
        """Reset the controller, so that the next run equals the first."""
        ...


def law(name: str) -> type:
    """Return the class of a built-in controller.

    Raises:
        UnknownNameError: there is none of that name; the message lists the known names.
    """
    if name not in _LAWS:
        raise UnknownNameError(
            f"unknown controller {name!r}{near(name, NAMES)}: known are {', '.join(NAMES)}"
        )
    module, attribute = _LAWS[name]
    return getattr(import_module(module), attribute)


def plugin_names() -> tuple[str, ...]:
    """Return the names of the controllers of installed packages, except for built-in names."""
    return tuple(
        name for name in plugin_controllers.plugin_entries(plugin_controllers.GROUP) if name not in NAMES
    )


def require_known(name: str) -> None:
    """Check the name of a controller, built-in or not, without loading it.

    Raises:
        UnknownNameError: there is no such name or file; the message states what is valid.
    """
    plugin_controllers.require_known(name, NAMES)


def title(name: str) -> str:
    """Return the description of a controller in a line; for built-in ones it is read from the source text.

    Raises:
        UnknownNameError, PluginError: the controller does not exist, or does not load.

    Example:
        >>> import controllers
        >>> controllers.title("pid")
        'PD feedback with an integral of the error, which stops while the drive is at its limit.'
    """
    if name not in _LAWS:
        return (_found(name).__doc__ or "").strip().partition("\n")[0]
    module, attribute = _LAWS[name]
    source = Path(__file__).with_name(f"{module.partition('.')[2]}.py").read_text(encoding="utf-8")
    classes = (item for item in ast.parse(source).body if isinstance(item, ast.ClassDef))
    docs = {item.name: ast.get_docstring(item) or "" for item in classes}
    return docs[attribute].partition("\n")[0]


def label(name: str) -> str:
    """Return a short text for tables and file names: `./my.py:Law` -> `Law`."""
    return name if name in NAMES else plugin_controllers.label(name)


def labels(names: Iterable[str]) -> dict[str, str]:
    """Return the labels of several controllers; equal labels are preceded by the file or module.

    Args:
        names: names as for `make`.
    """
    names = list(dict.fromkeys(names))
    result = {name: label(name) for name in names}
    shared = [name for name in names if list(result.values()).count(result[name]) > 1 and name not in NAMES]
    for name in shared:
        place = Path(plugin_controllers.parts(name)[0]).name.removesuffix(".py")
        result[name] = f"{place}.{result[name]}"
    for number, name in enumerate(shared, start=1):  # the same file name in two folders
        if list(result.values()).count(result[name]) > 1:
            result[name] = f"{result[name]}-{number}"
    return result


def settings(name: str) -> tuple[str, ...]:
    """Return the settings of a controller, keywords of `make`, with `bandwidth` and `period` if it has them.

    Raises:
        UnknownNameError, PluginError: there is no such controller, or it does not load.
    """
    return plugin_controllers.settings(_found(name))


def defaults(name: str) -> dict[str, Any]:
    """Return the defaults of a controller's settings; `None` means that the controller derives the value.

    Raises:
        UnknownNameError, PluginError: there is no such controller, or it does not load.
    """
    return plugin_controllers.defaults(_found(name))


def _found(name: str) -> Any:
    """Return the class of a built-in controller, or the object that another name refers to."""
    plugin_controllers.require_known(name, NAMES)
    return law(name) if name in NAMES else plugin_controllers.found(name)


def make(
    name: str, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3,
    T_flange_tool: ArrayLike | None = None, surface: ArrayLike | None = None, **settings: Any,
) -> Controller:  # fmt: skip
    """Make a controller for a robot.

    Args:
        name: one of `NAMES`, or the name of a user's controller, see `controllers.plugin_controllers`.
        robot: the controller's model of the robot, drives included; the plant may differ from it.
        bandwidth: omega of the closed loop's poles, scalar or (n,), in [rad/s].
        period: time between two calls, in [s], for controllers that integrate or predict friction.
        T_flange_tool: (4, 4) pose of the tool on the flange, for controllers of its motion and force.
        surface: (21,) surface, a row of `twin.dynamics.Environment`, for controllers that know it.
        settings: settings of the controller, as Kp of `pd`, see `settings`.

    Raises:
        UnknownNameError: there is no such controller.
        PluginError: a user's controller does not load, cannot be made, or has no such setting.
        ValueError: the bandwidth, the period or a setting is invalid.

    Example:
        >>> import controllers, twin
        >>> pd = controllers.make("pd", twin.load("irb140"), bandwidth=10.0)
        >>> pd.gains.Kp.shape, round(float(pd.gains.Kd[0] / pd.gains.Kp[0]), 6)  # 2 / bandwidth, in [s]
        ((6,), 0.2)
    """
    usual = {"bandwidth": bandwidth, "period": period}
    usual |= {} if T_flange_tool is None else {"T_flange_tool": T_flange_tool}
    usual |= {} if surface is None else {"surface": surface}
    return plugin_controllers.make(_found(name), name, robot, usual, settings)
