"""Base parameters: how many, what they stand for, and that nothing is lost in them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.support.processor_times import shared
from twin.base.errors import IdentificationError
from twin.data.identification.torque_model import base_parameters
from twin.physics.robot.evaluation import uncompiled

COUNTS = {"irb140": (36, 60, 58, 84), "irb1400": (39, 80, 60, 104)}


@shared
def random_base(robot):
    """Random motions tell the same every time."""
    return base_parameters(robot)


@pytest.fixture(scope="module", params=["irb140", "irb1400"])
def arm(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def driven(arm):
    return arm.with_drives("rigid", replace(arm.drives, static=arm.drives.coulomb))


def torque(arm, inertias, q, qd, qdd):
    """Inverse dynamics of the arm with other inertias, by its kernel."""
    out = np.empty_like(q)
    arm.kernels.inverse_dynamics_batch(q, qd, qdd, inertias.reshape(-1, 10), arm.gravity.copy(), out)
    return out


def test_their_number_is_the_rank_of_other_samples_and_of_other_code(arm, driven):
    """Twice: singular values, of the arm for columns that inverse dynamics gives for one parameter each."""
    rng = np.random.default_rng(3)
    q, qd, qdd = rng.uniform(-2, 2, (3, 60, 6))
    Y = np.stack([torque(arm, one, q, qd, qdd).ravel() for one in np.eye(10 * arm.tree.n)], axis=-1)
    Y_driven = twin.dynamics_regressor(driven, q, qd, qdd).reshape(-1, len(random_base(driven).K.T))
    for rows, base in ((Y, random_base(arm)), (Y_driven, random_base(driven))):
        norms = np.linalg.norm(rows, axis=0)
        live = norms > 1e-12 * np.max(norms)
        values = np.linalg.svd(rows[:, live] / norms[live], compute_uv=False)
        assert np.sum(values > 1e-8 * values[0]) == np.sum(values > 1e-13 * values[0]) == len(base.K)
    assert (*random_base(arm).K.shape, *random_base(driven).K.shape) == COUNTS[arm.name]


def test_base_parameters_span_the_regressor(driven):
    base = random_base(driven)
    q, qd, qdd = np.random.default_rng(8).uniform(-3, 3, (3, 80, 6))
    Y = twin.dynamics_regressor(driven, q, qd, qdd)
    lost = np.max(np.abs(Y[..., base.columns] @ base.K - Y), axis=(0, 1))
    scale = np.max(np.abs(Y), axis=(0, 1))
    assert np.all(lost <= 1e-10 * np.maximum(scale, 1e-4))
    assert np.max(lost) <= 1e-13 * np.max(scale)
    np.testing.assert_array_equal(base.K[:, base.columns], np.eye(len(base.K)))


def test_they_read_as_sums(irb140, irb1400):
    of_irb140 = dict(zip(random_base(irb140).symbols, random_base(irb140).sums, strict=True))
    assert of_irb140["mx2"] == "mx2"
    assert of_irb140["mz2"] == "mz2 + 0.36 m3 + 0.36 m4 + 0.36 m5 + 0.36 m6"
    assert of_irb140["Iyy4"] == "Iyy4 - Izz4 - Izz5 - Izz6"
    assert of_irb140["Iyz2"] == "Iyz2 - 0.36 my3"
    of_irb1400 = dict(zip(random_base(irb1400).symbols, random_base(irb1400).sums, strict=True))
    assert of_irb1400["Ixx2"] == "Ixx2 - Izz2 + 0.36 m3 + 0.36 m4 + 0.36 m5 + 0.36 m6 + Ixx_rod - Izz_rod"
    symbols = twin.dynamics.dynamic_parameters(irb140).symbols
    undetermined = [symbols[k] for k in random_base(irb140).undetermined]
    assert undetermined == ["m1", "mx1", "my1", "mz1", "Ixx1", "Iyy1", "Ixy1", "Ixz1", "Iyz1", "my2"]
    coefficients = random_base(irb140).K[np.abs(random_base(irb140).K) > 0]
    assert set(np.abs(coefficients).tolist()) == {1.0, 0.36, 0.38, 0.0049, 0.1296, 0.1444, 0.1493}


def test_a_planar_arm_has_those_of_the_textbooks():
    """Spong & Vidyasagar's planar elbow: three a link where gravity acts in its plane, two less where not."""
    arm = uncompiled(twin.load("two_link"))
    assert random_base(arm).sums == ("Izz1 + m2", "mx2", "my2", "Izz2")
    on_wall = random_base(uncompiled(arm.mounted("wall"))).sums
    assert on_wall == ("mx1 + m2", "my1", "Izz1 + m2", "mx2", "my2", "Izz2")


def test_motion_determines_parameters_of_moving_links(irb140, rng):
    """At rest these are first moments, which gravity pulls at."""
    q = rng.uniform(-1, 1, (100, 6))
    Y = twin.dynamics_regressor(irb140, q, 0 * q, 0 * q)
    base = base_parameters(irb140, Y)
    assert base.symbols == tuple(symbol for symbol in random_base(irb140).symbols if symbol.startswith("m"))
    triangle = np.linalg.qr(Y.reshape(-1, 60), mode="r")
    np.testing.assert_array_equal(base_parameters(irb140, triangle).columns, base.columns)
    with pytest.raises(IdentificationError, match="determines no dynamic parameter"):
        base_parameters(irb140, np.zeros((3, 6, 60)))
    with pytest.raises(ValueError, match=r"expected a finite Y of shape \(\.\.\., 60\)"):
        base_parameters(irb140, np.zeros((3, 6, 61)))


def test_columns_that_only_rounding_separates_are_dependent(irb140):
    """Axes that are off by the rounding of 1.5708 give no further parameter; axes that are turned do."""
    drives = replace(irb140.drives, static=irb140.drives.coulomb)
    counts = []
    for angle in (0.0, 3.7e-6, 1e-2):
        turned = np.array(irb140.tree.T_parent_joint)
        for joint, axis in ((1, "x"), (3, "y"), (4, "x")):
            turned[joint, :3, :3] = turned[joint, :3, :3] @ Rotation.from_euler(axis, angle).as_matrix()
        robot = replace(irb140, tree=replace(irb140.tree, T_parent_joint=turned))
        counts.append(len(base_parameters(robot.with_drives("rigid", drives)).columns))
    assert counts[0] == counts[1] == 58
    assert counts[2] > 58
