"""A digital twin of ABB arms: exact analytic models beside a physics engine.

Every public name can be imported from here; its module is loaded when the name is first used, so that
`import twin` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twin.cartesian_dynamics import operational_space
    from twin.constrained_dynamics import constrained_forward_dynamics, surface_constraint
    from twin.dh_frames import dh_poses, dh_transforms
    from twin.dh_robots import LinkBody, dh_robot
    from twin.differential_kinematics import (
        analytic_jacobian,
        analytic_jacobian_dot,
        analytic_jacobian_inverse,
        inverse_acceleration,
        inverse_velocity,
    )
    from twin.dynamics import (
        coriolis_matrix,
        energy,
        forward_dynamics,
        gravity_torque,
        inverse_dynamics,
        mass_matrix,
    )
    from twin.euler_angles import (
        axis_angle_from_matrix,
        euler_from_matrix,
        euler_rate_inverse,
        euler_rate_matrix,
        matrix_from_axis_angle,
        matrix_from_euler,
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
    from twin.manipulability import (
        force_ellipsoid,
        manipulability_measure,
        singular_configuration,
        velocity_ellipsoid,
    )
    from twin.model_check import check_model
    from twin.numerical_inverse import numerical_inverse_kinematics
    from twin.pose_coordinates import tool_coordinates
    from twin.quaternions import (
        quaternion_conjugate,
        quaternion_from_polar,
        quaternion_inverse,
        quaternion_norm,
        quaternion_polar,
        rotated_vector,
    )
    from twin.robot import DH, Payload, Robot
    from twin.rotations import (
        matrix_from_quaternion,
        pose_matrix,
        pose_vector,
        quaternion_from_matrix,
        quaternion_product,
        quaternion_rate,
    )
    from twin.statics import cross_matrix, mobility, twist_transform, wrench_torque, wrench_transform

_HOME = {
    "cartesian_dynamics": ("operational_space",),
    "constrained_dynamics": ("constrained_forward_dynamics", "surface_constraint"),
    "dh_frames": ("dh_poses", "dh_transforms"),
    "dh_robots": ("LinkBody", "dh_robot"),
    "differential_kinematics": (
        "analytic_jacobian",
        "analytic_jacobian_dot",
        "analytic_jacobian_inverse",
        "inverse_acceleration",
        "inverse_velocity",
    ),
    "dynamics": (
        "coriolis_matrix",
        "energy",
        "forward_dynamics",
        "gravity_torque",
        "inverse_dynamics",
        "mass_matrix",
    ),
    "euler_angles": (
        "axis_angle_from_matrix",
        "euler_from_matrix",
        "euler_rate_inverse",
        "euler_rate_matrix",
        "matrix_from_axis_angle",
        "matrix_from_euler",
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
    "manipulability": (
        "force_ellipsoid",
        "manipulability_measure",
        "singular_configuration",
        "velocity_ellipsoid",
    ),
    "model_check": ("check_model",),
    "numerical_inverse": ("numerical_inverse_kinematics",),
    "pose_coordinates": ("tool_coordinates",),
    "quaternions": (
        "quaternion_conjugate",
        "quaternion_from_polar",
        "quaternion_inverse",
        "quaternion_norm",
        "quaternion_polar",
        "rotated_vector",
    ),
    "robot": ("DH", "Payload", "Robot"),
    "rotations": (
        "matrix_from_quaternion",
        "pose_matrix",
        "pose_vector",
        "quaternion_from_matrix",
        "quaternion_product",
        "quaternion_rate",
    ),
    "statics": ("cross_matrix", "mobility", "twist_transform", "wrench_torque", "wrench_transform"),
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
