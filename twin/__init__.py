"""A digital twin of ABB arms: exact analytic models beside a physics engine.

Every public name can be imported from here; its module is loaded when the name is first used, so that
`import twin` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twin.dh_robots import LinkBody, dh_robot
    from twin.dynamics import (
        coriolis_matrix,
        energy,
        forward_dynamics,
        gravity_torque,
        inverse_dynamics,
        mass_matrix,
    )
    from twin.inverse import inverse_kinematics
    from twin.inverse_stages import main_axis_angles, wrist_axis_angles
    from twin.kinematics import (
        dh_angles,
        forward_kinematics,
        jacobian,
        jacobian_dot,
        joint_angles,
        pose_jacobian,
    )
    from twin.loading import laboratory_names, load, robot_names
    from twin.robot import DH, Payload, Robot

_HOME = {
    "dh_robots": ("LinkBody", "dh_robot"),
    "dynamics": (
        "coriolis_matrix",
        "energy",
        "forward_dynamics",
        "gravity_torque",
        "inverse_dynamics",
        "mass_matrix",
    ),
    "inverse": ("inverse_kinematics",),
    "inverse_stages": ("main_axis_angles", "wrist_axis_angles"),
    "kinematics": (
        "dh_angles",
        "forward_kinematics",
        "jacobian",
        "jacobian_dot",
        "joint_angles",
        "pose_jacobian",
    ),
    "loading": ("laboratory_names", "load", "robot_names"),
    "robot": ("DH", "Payload", "Robot"),
}
# No name may be that of a submodule: importing the submodule would replace it.
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'twin' has no attribute {name!r}")
    value = getattr(import_module(f"twin.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
