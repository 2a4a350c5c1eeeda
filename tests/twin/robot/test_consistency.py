"""Disagreements between a robot.toml and the URDF beside it are rejected.

tests/twin/robot/test_loading.py has further tests of this kind.
"""

from dataclasses import replace

import numpy as np
import pytest

import twin
from scenarios.checks.motion_range import random_positions
from twin.errors import RobotError
from twin.multibody.tree import Loop, frozen
from twin.robot import loops
from twin.robot.loading import consistency


@pytest.fixture(scope="module")
def arm():
    return twin.load("irb1400")


@pytest.fixture
def altered(arm, tmp_path):
    """Return a function that loads a copy of the robot with text replaced in robot.toml only."""

    def load(*replacements):
        (tmp_path / "irb1400.urdf").write_text(arm.urdf.read_text())
        text = arm.file.read_text()
        for old, new in replacements:
            assert text.count(old) >= 1
            text = text.replace(old, new, 1)
        (tmp_path / "robot.toml").write_text(text)
        return twin.load(tmp_path / "robot.toml")

    return load


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "q_min_deg = [-170, -70",
            "q_min_deg = [-170, -71",
            r"q_min_deg of joint_2 is -71 degrees, in irb14",
        ),
        (
            "70, 150, 115, 300]",
            "70, 150, 115, 200]",
            r"q_max_deg of joint_6 is 200 degrees, in .* 300 degrees",
        ),
        (
            "[120, 120, 120, 280",
            "[120, 120, 130, 280",
            r"qd_max_deg_s of joint_3 is 130 degrees/s, .* 120 deg",
        ),
        (
            "effort = [701, 896",
            "effort = [701, 897",
            r"effort of joint_2 is 897 N m, in irb1400\.urdf 896 N m",
        ),
        (
            "range_deg = [-75, 75]",
            "range_deg = [-75, 80]",
            r"joint\.joint_elbow\.range_deg is 80 degrees, .* 75",
        ),
        (
            "q = [0, 1, -1, 0, 0, 0]\nrange_deg = [-75",
            "q = [0, 1, -1, 0, 0, 0]\nrange_deg = [-60",
            r"joint\.joint_rod\.range_deg is -60 degrees, in irb1400\.urdf -75 degrees",
        ),
    ],
)
def test_a_limit_that_differs_from_the_urdf_is_rejected(altered, old, new, told):
    """The limit of the URDF would apply regardless of robot.toml."""
    with pytest.raises(RobotError, match=rf"{told}.*; write the URDF again with python -m urdf\.build"):
        altered((old, new))


def test_passive_joints_without_a_loop_are_rejected(arm, altered):
    """The engine would let the passive joints swing freely, while the model makes them follow the motors."""
    text = arm.file.read_text()
    loop = text[text.index("[loop.parallelogram]") : text.index("[rating]")]
    with pytest.raises(
        RobotError, match="neither a motor nor a closed loop moves joint_elbow and joint_rod: expected"
    ):
        altered((loop, ""))


def test_a_loop_that_constrains_nothing_is_rejected(altered):
    """Lever and rod already share the pin between them."""
    with pytest.raises(RobotError, match="closed loop moves joint_elbow and joint_rod"):
        altered(
            ('["rod", "3"]', '["rod", "lever"]'),
            ("[[-0.020, 0, 1.075], [-0.020, 0, 1.075]]", "[[-0.020, 0, 0.475], [-0.020, 0, 0.475]]"),
        )


@pytest.mark.parametrize(
    ("links", "free"), [(("link_rod", "link_1"), "joint_elbow"), (("link_3", "link_1"), "joint_rod")]
)
def test_the_error_names_only_the_free_joint(arm, links, free):
    first, second = map(arm.tree.links.index, links)
    robot = replace(arm, loops=(Loop("odd", (first, second), frozen([[0.1, 0.2, 0.3]] * 2)),))
    with pytest.raises(RobotError, match=f"neither a motor nor a closed loop moves {free}: expected"):
        consistency._check_passive_joints(arm.file, robot)


@pytest.mark.parametrize("joint", [0, 1])
@pytest.mark.parametrize("end", ["passive_min", "passive_max"])
def test_a_range_that_passes_the_fold_is_rejected(arm, joint, end):
    """The parallelogram folds flat at 90 degrees; a simulation past the fold looks plausible but is wrong."""
    sign = -1 if end == "passive_min" else 1
    for degrees in (90, 91, 170):
        limit = getattr(arm, end).copy()
        limit[joint] = sign * np.deg2rad(degrees)
        name = ("joint_elbow", "joint_rod")[joint]
        with pytest.raises(
            RobotError, match=rf"parallelogram folds flat before {name} is at {sign * degrees}"
        ):
            consistency._check_folds(arm.file, replace(arm, **{end: limit}))
    limit[joint] = sign * np.deg2rad(89.99)
    consistency._check_folds(arm.file, replace(arm, **{end: limit}))


def test_a_passive_joint_that_never_moves_causes_no_fold(arm):
    G = arm.embedding.copy()
    G[list(arm.passive)] = 0
    consistency._check_folds(arm.file, replace(arm, embedding=G))


@pytest.mark.parametrize("sliding", [(), (1, 3, 6)])
def test_rates_are_the_derivatives_of_the_gaps(arm, rng, sliding):
    """Central differences confirm the rates for arbitrary loops, including loops with prismatic joints."""
    kinds = tuple("prismatic" if joint in sliding else "revolute" for joint in range(arm.tree.n))
    odd = [Loop("odd", ends, frozen(rng.normal(size=(2, 3)))) for ends in ((7, 2), (5, 6), (1, 4))]
    robot = replace(arm, tree=replace(arm.tree, kinds=kinds), loops=tuple(odd))
    q, h = rng.uniform(-1, 1, arm.tree.n), 1e-6
    rates = [
        (loops.gaps(robot, q + h * e) - loops.gaps(robot, q - h * e)).ravel() / (2 * h)
        for e in np.eye(arm.tree.n)
    ]
    # The error of the differences is about 1e-16 / h = 1e-10.
    np.testing.assert_allclose(loops.gap_rates(robot, q), np.transpose(rates), rtol=0, atol=1e-9)


def test_the_embedding_opens_no_loop_at_any_rate(arm, rng):
    for q in random_positions(arm, rng, 20):
        rates = loops.gap_rates(arm, arm.tree_positions(q))
        assert np.abs(rates @ arm.embedding).max() < 1e-15
        assert np.linalg.matrix_rank(rates[:, list(arm.passive)]) == 2
