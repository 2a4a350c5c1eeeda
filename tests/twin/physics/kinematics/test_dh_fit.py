"""Denavit-Hartenberg tables from URDFs, and the closed-form inverse kinematics that they give."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.support.refusals import refused
from twin.base.errors import RobotError
from twin.physics.kinematics.dh_fit import fitted_dh
from twin.physics.multibody.tree import frozen
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.robot import DH, dh_transforms


def random_table(rng, offset):
    """Return the DH table of a random arm; with `offset`, the wrist centre lies beside the arm's plane."""
    right = np.pi / 2
    a = [rng.uniform(-0.2, 0.3), rng.uniform(0.3, 0.8), rng.uniform(-0.1, 0.2), 0.0, 0.0, 0.0]
    d = [rng.uniform(0.1, 0.6), 0.0, rng.uniform(-0.2, 0.2) * offset, rng.uniform(0.3, 0.8), 0.0, 0.1]
    alpha = [-right, 0.0, rng.choice([-right, right]), 0.0, 0.0, 0.0]
    alpha[3] = rng.choice([-right, right])
    alpha[4] = -alpha[3]
    theta0 = rng.uniform(-0.3, 0.3, 6) - right * np.eye(6)[1]
    return DH(*(np.array(column, dtype=float) for column in (theta0, d, a, alpha)))


def random_pose(rng, length=0.3):
    T = np.eye(4)
    T[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    T[:3, 3] = rng.uniform(-length, length, 3)
    return T


def urdf_text(rng, dh, digits=17):
    """Return the URDF of an arm with this table; its numbers are rounded to some digits after the point."""
    frames = [np.eye(4)]
    for A in dh_transforms(dh, dh.theta0):
        frames.append(frames[-1] @ A)
    T_base_0 = random_pose(rng)
    signs = rng.choice([-1.0, 1.0], 6)
    links, axes = [np.eye(4)], []
    for i in range(6):
        z, origin = (T_base_0 @ frames[i])[:3, 2], (T_base_0 @ frames[i])[:3, 3]
        link = random_pose(rng)
        link[:3, 3] = origin + rng.uniform(-0.2, 0.2) * z  # anywhere on the axis
        links.append(link)
        axes.append(signs[i] * link[:3, :3].T @ z)
    links.append(T_base_0 @ frames[6] @ random_pose(rng, 0.1))
    names = ["base", *(f"link_{k}" for k in range(1, 7)), "tool0"]
    text = ['<robot name="drawn">', *(f'<link name="{name}"/>' for name in names)]

    def written(numbers):
        return " ".join(repr(round(float(number), digits)) for number in numbers)

    for i in range(7):
        T = np.linalg.inv(links[i]) @ links[i + 1]
        rpy = Rotation.from_matrix(T[:3, :3]).as_euler("xyz")
        text += [
            f'<joint name="joint_{i + 1}" type="{"revolute" if i < 6 else "fixed"}">',
            f'<parent link="{names[i]}"/><child link="{names[i + 1]}"/>',
            f'<origin xyz="{written(T[:3, 3])}" rpy="{written(rpy)}"/>',
            f'<axis xyz="{written([*axes, (0, 0, 1)][i])}"/>',
            '<limit lower="-3.1" upper="3.1" effort="0" velocity="0"/></joint>',
        ]
    return "\n".join([*text, "</robot>"])


def drawn_arm(rng, folder, offset=False, digits=17):
    """Return a random arm of the family as loaded from its URDF in a folder."""
    path = folder / "drawn.urdf"
    path.write_text(urdf_text(rng, random_table(rng, offset), digits), encoding="utf-8")
    return twin.load(path)


def solutions_and_errors(robot, q):
    """Return the largest pose error of all solutions, and how far the nearest is from each generating q."""
    T = twin.forward_kinematics(robot, q)
    rows = twin.inverse_kinematics(robot, T, limits=False)
    there = np.isfinite(rows[..., 0])
    reached = twin.forward_kinematics(robot, rows[there])
    error = np.max(np.abs(reached - np.repeat(T[:, None], 8, axis=1)[there]))
    apart = np.abs((rows - q[:, None] + np.pi) % (2 * np.pi) - np.pi).max(axis=-1)
    return error, np.nanmin(np.where(there, apart, np.nan), axis=1)


RIGHT = np.pi / 2
TABLES = {
    # ros-industrial, kuka_experimental: KR 210 L150
    "kr210": ([0, -RIGHT, 0, 0, 0, 0], [0.75, 0, 0, 1.5, 0, 0.303], [0.35, 1.25, -0.054, 0, 0, 0],
              [-RIGHT, 0, -RIGHT, RIGHT, -RIGHT, 0]),
    # P. I. Corke, B. Armstrong-Helouvry, ICRA 1994: the lateral offset is d_3
    "puma560": ([0] * 6, [0, 0, 0.15005, 0.4318, 0, 0], [0, 0.4318, 0.0203, 0, 0, 0],
                [RIGHT, 0, -RIGHT, RIGHT, -RIGHT, 0]),
    # Kinova, Gen2 Ultra lightweight robot user guide: spherical wrist of six axes
    "kinova": ([0] * 6, [0.2755, 0, -0.0098, -0.3111, 0, -0.2638], [0, 0.41, 0, 0, 0, 0],
               [RIGHT, np.pi, RIGHT, RIGHT, RIGHT, np.pi]),
}  # fmt: skip


def loaded(text, folder):
    (folder / "drawn.urdf").write_text(text, encoding="utf-8")
    return uncompiled(twin.load(folder / "drawn.urdf"))


def table(name):
    return DH(*(np.array(column, dtype=float) for column in TABLES[name]))


def test_urdf_alone_has_the_solutions_of_the_published_table_in_the_same_rows(irb140):
    published = irb140
    robot = twin.load(published.urdf)
    fit = fitted_dh(robot)
    assert fit.error <= 1e-15
    assert fit.is_exact
    np.testing.assert_array_equal(fit.T_base_0, np.eye(4))
    np.testing.assert_array_equal(fit.T_6_flange, np.eye(4))
    np.testing.assert_allclose(np.abs(fit.dh.a), np.abs(published.dh.a), rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.abs(fit.dh.d), np.abs(published.dh.d), rtol=0, atol=1e-15)
    q = np.random.default_rng(0).uniform(robot.q_min, robot.q_max, (50, 6))
    T = twin.forward_kinematics(robot, q)
    rows, expected = (twin.inverse_kinematics(arm, T) for arm in (robot, published))
    np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(twin.inverse_kinematics(robot, T, near=q), q, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(twin.inverse_kinematics(robot, T[0]), rows[0])


@pytest.mark.parametrize("seed", range(4))
def test_arm_drawn_anywhere_has_a_table_and_loses_no_solution(seed, tmp_path):
    rng = np.random.default_rng(seed)
    robot = uncompiled(drawn_arm(rng, tmp_path, offset=seed % 2 == 1))
    fit = fitted_dh(robot)
    assert fit.error < 1e-13
    assert abs(fit.dh.d[1]) > 0.01 or seed % 2 == 0
    error, apart = solutions_and_errors(robot, rng.uniform(-3, 3, (20, 6)))
    assert error < 1e-13
    assert np.all(apart < 1e-6)


def test_known_arms_and_stated_tables_are_solved_from_their_dimensions(tmp_path):
    stated = table("puma560")  # with offsets of both axes
    stated.alpha[:] = [-RIGHT, 0, -RIGHT, RIGHT, -RIGHT, 0]
    stated.d[1:3] = 0.2, 0.05
    robots = [loaded(urdf_text(np.random.default_rng(3), table(name)), tmp_path) for name in TABLES]
    for robot in (*robots, uncompiled(twin.dh_robot("stated", stated))):
        error, apart = solutions_and_errors(robot, np.random.default_rng(3).uniform(-3, 3, (20, 6)))
        assert error < 1e-13, robot.name
        assert np.all(apart < 1e-6), robot.name


def test_rounded_files_are_polished(tmp_path):
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        robot = uncompiled(drawn_arm(rng, tmp_path, offset=seed % 2 == 1, digits=5))
        fit = fitted_dh(robot)
        assert 1e-8 < fit.error < 1e-4
        errors.append(solutions_and_errors(robot, rng.uniform(-3, 3, (10, 6)))[0])
    assert np.median(errors) < 1e-13
    assert max(errors) < 1e-6


def test_rows_follow_the_geometry_and_not_the_signs_and_the_base_frame_of_the_file():
    """Some axes are opposite; the base frame is turned upside down; at q = 0 the arm leans back."""
    arm = twin.load(twin.load("irb1600").urdf)
    signs = np.array([-1.0, 1.0, -1.0, -1.0, 1.0, -1.0])
    T_new_old = twin.pose_matrix([0.1, -0.2, 0.4, np.cos(1.3), np.sin(1.3), 0.0, 0.0])
    poses = arm.tree.T_parent_joint.copy()
    poses[0] = T_new_old @ poses[0]
    lean = 1.8
    poses[1, :3, :3] = poses[1, :3, :3] @ Rotation.from_rotvec(-lean * arm.tree.axes[1]).as_matrix()
    tree = replace(arm.tree, axes=frozen(signs[:, None] * arm.tree.axes), T_parent_joint=frozen(poses))
    drawn = uncompiled(replace(arm, tree=tree))
    T = twin.forward_kinematics(arm, np.random.default_rng(0).uniform(-1, 1, (20, 6)))
    rows = twin.inverse_kinematics(arm, T, limits=False)
    expected = (rows + lean * np.eye(6)[1]) * signs
    found = twin.inverse_kinematics(drawn, T_new_old @ T, limits=False)
    apart = (found - expected + np.pi) % (2 * np.pi) - np.pi
    assert np.array_equal(np.isfinite(found), np.isfinite(expected))
    assert np.nanmax(np.abs(apart)) < 1e-11


def test_reason_why_there_is_no_table_names_the_axes(tmp_path, irb140, irb1400):
    def changed(column, row, value):
        dh = table("kr210")
        getattr(dh, column)[row] = value
        robot = loaded(urdf_text(np.random.default_rng(0), dh), tmp_path)
        return lambda: twin.inverse_kinematics(robot, np.eye(4))

    sliding = replace(irb140, tree=replace(irb140.tree, kinds=("prismatic", *irb140.tree.kinds[1:])), dh=None)
    refused(
        (changed("alpha", 1, np.deg2rad(1.2)), "axes 2 and 3 are 1.2 deg apart, expected 0"),
        (changed("d", 4, 0.06), "axes 4, 5, 6 miss one point by 0.03 m, expected a spherical wri"),
        (changed("alpha", 0, -1.0), "axes 1 and 2 are 57.3 deg apart, expected 90"),
        (changed("a", 1, 0.0), "axes 2 and 3 are the same line"),
        (lambda: fitted_dh(twin.load(irb1400.urdf)), "6 joints move its flange and 8 have a motor, expected"),
        (lambda: fitted_dh(sliding), "joint 'joint_1' is prismatic"),
        error=RobotError,
    )
