"""Misuse from Python gets one clear sentence."""

import os
import re

import numpy as np
import pytest

import twin
from controllers.plugin_controllers import MyController
from twin import AnalyticPlant, quintic
from twin.base.arrays import real_array
from twin.base.errors import PluginError, TwinError, UnknownNameError
from twin.physics.kinematics.differential import coordinates_from_pose, twist_transform
from twin.physics.rotations.euler_angles import axis_angle_from_matrix, euler_from_matrix, matrix_from_euler
from twin.physics.rotations.rotations import (
    pose_vector,
    quaternion_by_largest_axis,
    quaternion_from_matrix,
    quaternion_norm,
)
from twin.physics.trajectories.sampling import semi_implicit_from_positions


def test_a_robot_loads_from_a_folder_whose_name_is_not_utf_8(tmp_path, monkeypatch):
    folder = os.path.join(os.fsencode(tmp_path), b"odd\xff")
    os.mkdir(folder)
    monkeypatch.chdir(os.fsdecode(folder))
    assert twin.load("irb140").n == 6


class Law:
    def reset(self):
        raise KeyError("r")


def test_arguments_of_another_kind_and_names_that_are_near(irb140):
    for call, told in (
        (lambda: irb140.poses["tset_1"], r"unknown pose 'tset_1', did you mean 'test_1'\?: known are zero"),
        (lambda: twin.load("IRB140"), "unknown robot 'IRB140', did you mean 'irb140'"),
        (lambda: twin.forward_kinematics("irb140", [0.0] * 6), r"expected a Robot, as twin\.load gives it"),
        (lambda: irb140.with_payload(3), r"expected a twin\.Payload or None, got 3: write"),
        (lambda: twin.Payload("2"), "expected the payload's mass to be real numbers, got text"),
        (lambda: AnalyticPlant(irb140, time_step="1e-3"), "the time step to be real numbers, got text"),
        (lambda: twin.Simulation(irb140, time_step="1e-3"), "the time step to be real numbers, got text"),
        (MyController("law", Law).reset, r"controller 'law' failed in its reset: .*KeyError"),
    ):
        with pytest.raises((UnknownNameError, ValueError, PluginError), match=told):
            call()
    with twin.Simulation(irb140) as arm, pytest.raises(TwinError, match="the torques are too large"):
        arm.step([1e308] * 6)


# Rejection of values that are no real numbers, no rotations or no poses by every function.


Q = np.array([0.1, 0.2, -0.3, 0.4, 0.5, 0.6])
NUMBERS = {
    "an array of which some are masked": np.ma.array(Q, mask=[0, 1, 0, 0, 0, 0]),
    "complex numbers": Q + 1j,
    "spans of time": np.arange(6).astype("timedelta64[s]"),
    "dates": np.arange(6).astype("datetime64[s]"),
    "text": Q.astype(str),
    "truth values": Q > 0,
}


def rows(x):
    return np.ma.array([x] * len(x)) if isinstance(x, np.ma.MaskedArray) else np.tile(x, (len(x), 1))


TAKERS = {
    "q": lambda robot, x: twin.forward_kinematics(robot, x),
    "wrench": lambda robot, x: twin.inverse_dynamics(robot, Q, Q, Q, x),
    "near": lambda robot, x: twin.inverse_kinematics(robot, np.eye(4), near=x),
    "T_base_tool": lambda robot, x: twin.inverse_kinematics(robot, rows(x[:4])),
    "T_flange_tool": lambda robot, x: twin.jacobian(robot, Q, rows(x[:4])),
    "R": lambda robot, x: quaternion_from_matrix(rows(x[:3])),
    "t": lambda robot, x: quintic(Q, -Q, duration=1.0)(x),
    "before": lambda robot, x: semi_implicit_from_positions([Q], 1e-3, before=x),
    "the payload's com": lambda robot, x: twin.Payload(1.0, x[:3]),
}


@pytest.mark.parametrize("name", TAKERS)
def test_what_is_no_real_number_is_refused_by_name(robot, name):
    for kind, values in NUMBERS.items():
        with pytest.raises(ValueError, match=f"^expected {name} to be real numbers, got {kind}"):
            TAKERS[name](robot, values)


def test_numbers_of_other_kinds_are_taken():
    for values in ([1, 2], (1.0, 2), np.array([1, 2], np.int8), np.float32([1, 2]), np.ma.array([1.0, 2.0])):
        np.testing.assert_array_equal(real_array(values, "x"), [1.0, 2.0])
        assert real_array(values, "x").dtype == np.float64
    own = np.ones(3)
    assert real_array(own, "x") is own
    for values in ([[1.0], [1.0, 2.0]], [None], {"a": 1.0}, "home"):
        with pytest.raises(ValueError, match=r"^expected x to be real numbers, got "):
            real_array(values, "x")
    with pytest.raises(ValueError, match="expected q to be real numbers, got complex numbers"):
        quaternion_norm([1j, 0, 0, 0])


OF_MATRICES = (
    quaternion_from_matrix,
    quaternion_by_largest_axis,
    axis_angle_from_matrix,
    lambda R: euler_from_matrix(R, "zyx"),
)


@pytest.mark.parametrize("convert", OF_MATRICES)
def test_what_is_no_rotation_is_refused_with_its_deviation(convert):
    R = matrix_from_euler([0.3, -0.2, 1.1], "zyx")
    for wrong, told in (
        (2.0 * R, "expected R to be rigid within 1e-09 (a right-handed rotation), got a deviation of 1.5"),
        (np.diag([1.0, 1.0, -1.0]) @ R, "got a deviation of 2: its rotation is not right-handed"),
        (np.array([R, R + 1e-8]), "expected R[1] to be rigid within 1e-09"),
        (R * [np.inf, 1.0, 1.0], "expected R to be finite, got"),
    ):
        with pytest.raises(ValueError, match=re.escape(told)):
            convert(wrong)
    convert(np.linalg.matrix_power(R, 500))
    convert(np.round(R, 9))


def test_what_is_no_pose_is_refused(robot):
    T = twin.forward_kinematics(robot, Q)
    for convert in (pose_vector, lambda T: coordinates_from_pose(T, "zyx"), twist_transform):
        for wrong in (T.T, np.diag([1.0, 1.0, -1.0, 1.0]) @ T):
            with pytest.raises(ValueError, match=r"to be rigid within 1e-09 .*got a deviation of"):
                convert(wrong)
