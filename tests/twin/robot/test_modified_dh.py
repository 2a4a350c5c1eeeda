"""A DH table in the modified convention, against the product of its transformations, written down here."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from twin.errors import RobotError
from twin.robot.evaluation import uncompiled

A = [0, 0, 0, 0.0825, -0.0825, 0, 0.088]
ALPHA = [0, -90, 90, 90, -90, 90, 90]
D = [0.333, 0, 0.316, 0, 0.384, 0, 0.1]
TENSOR = [0.1, 0.12, 0.13, 0.01, 0.02, -0.015]
TABLE = f"""
name = "seven"
title = "Seven axes"
source = "made up, as a Panda"

[dh]
convention = "modified"
theta0_deg = [0, 0, 0, 0, 0, 0, 0]
d = {D}
a = {A}
alpha_deg = {ALPHA}
source = "made up"

[links]
source = "made up"
""" + "".join(
    f"[link.{i + 1}]\nmass = {i + 1}\ncom = [0.1, {0.02 * i}, -0.05]\ninertia = {TENSOR}\n" for i in range(7)
)


def frames(q):
    """Poses of the seven frames, each at its joint: Rx(alpha) Tx(a) Rz(q) Tz(d)."""
    T, found = np.eye(4), []
    for a, alpha, d, angle in zip(A, ALPHA, D, q, strict=True):
        before, joint = np.eye(4), np.eye(4)
        before[:3, :3] = Rotation.from_euler("x", alpha, degrees=True).as_matrix()
        before[:3, 3] = (a, 0, 0)
        joint[:3, :3], joint[2, 3] = Rotation.from_euler("z", angle).as_matrix(), d
        T = T @ before @ joint
        found.append(T)
    return found


def test_flange_and_inertia_are_those_of_the_transformations(tmp_path, rng):
    (tmp_path / "seven_dh.toml").write_text(TABLE, encoding="utf-8")
    arm = uncompiled(twin.load(tmp_path / "seven_dh.toml"))
    q = rng.uniform(-2.0, 2.0, 7)
    T = frames(q)
    np.testing.assert_allclose(twin.forward_kinematics(arm, q), T[-1], atol=1e-14)
    xx, yy, zz, xy, xz, yz = TENSOR
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    M = np.zeros((7, 7))
    for i in range(7):
        com = (T[i] @ [0.1, 0.02 * i, -0.05, 1.0])[:3]
        axes = np.array([one[:3, 2] for one in T[: i + 1]])
        linear, angular = np.zeros((2, 3, 7))
        linear[:, : i + 1] = np.cross(axes, com - np.array([one[:3, 3] for one in T[: i + 1]])).T
        angular[:, : i + 1] = axes.T
        R = T[i][:3, :3]
        M += (i + 1) * linear.T @ linear + angular.T @ R @ tensor @ R.T @ angular
    np.testing.assert_allclose(twin.mass_matrix(arm, q), M, rtol=1e-12, atol=1e-13)


def test_what_is_no_modified_table_is_one_sentence(tmp_path):
    for before, after, said in (
        ('"modified"', '"craig"', "dh.convention: expected standard or modified, got 'craig'"),
        ("a = [0, 0,", "a = [0.1, 0,", "expected a and alpha_deg of the first row to be 0"),
    ):
        (tmp_path / "bad_dh.toml").write_text(TABLE.replace(before, after), encoding="utf-8")
        with pytest.raises(RobotError, match=said):
            twin.load(tmp_path / "bad_dh.toml")
