"""Loading robots: what is accepted, and the one sentence that refuses what no simulation could mean."""

import warnings

import numpy as np
import pytest

import twin
from tests.support.refusals import edits_refused
from twin.base.errors import PayloadWarning, RobotError, UnknownNameError

IRB140 = twin.load("irb140").urdf.with_name("robot.toml")


def test_a_missing_file_and_an_unknown_name():
    with pytest.raises(RobotError, match=r"no such robot file: /nowhere/arm\.urdf"):
        twin.load("/nowhere/arm.urdf")
    with pytest.raises(UnknownNameError, match="unknown robot 'irb99': known are irb120"):
        twin.load("irb99")


def test_robot_toml_that_contradicts_itself_or_its_urdf(tmp_path):
    (tmp_path / "irb140.urdf").write_text(IRB140.with_name("irb140.urdf").read_text())
    told = "pose 'test_1': joint_1 would be at 288 deg .*its range is -180 deg"
    rows = [
        ("name =", 'colour = "orange"\nname =', "unknown key 'colour'"),
        ("alpha_deg = [-90, 0,", "alpha_deg = [-90,", "expected 6 numbers, got 5"),
        ("d = [0.352", "d = [0.452", r"DH table and irb140\.urdf differ by 0\.1 in the pose of the flange"),
        ("q_deg = [28.79", "q_deg = [288", told),
    ]
    edits_refused(tmp_path / "robot.toml", IRB140.read_text(), rows, twin.load, RobotError)


def test_payloads_come_off_to_the_last_bit():
    robot = twin.load("irb140")
    inertia = np.random.default_rng(7).normal(size=(3, 3))
    inertia = np.eye(3) + 1e-3 * inertia @ inertia.T
    loaded = robot.with_payload(twin.Payload(6.0, (0.01, 0.02, 0.08), inertia))
    assert np.array_equal(loaded.with_payload(None).tree.inertias, robot.tree.inertias)
    assert np.array_equal(loaded.with_payload(loaded.payload).tree.inertias, loaded.tree.inertias)
    for seed in range(40):
        R = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
        twin.Payload(1.0, (0, 0, 0), R @ np.diag([1.0, 2.0, 3.0]) @ R.T)  # symmetric but for rounding


def test_payloads_that_cannot_exist_are_refused():
    for payload, told in (
        ((-1.0,), "payload mass of at least 0 kg, got -1"),
        ((float("nan"),), "payload mass"),
        ((1.0, (0, 0, 0), np.diag([1.0, 1.0, 3.0])), "no body has the principal moments"),
        ((0.0, (0, 0, 0), np.eye(3)), "payload without mass"),
        ((6.0, (0, 0, 80)), "centre of mass in metres, at most 5 m from the flange, got 80: are these mi"),
        ((1.0, (0, 0, 0), [[1, 1, 0], [0, 1, 0], [0, 0, 1]]), "symmetric"),
    ):
        with pytest.raises(ValueError, match=told):
            twin.Payload(*payload)


def test_payload_above_the_rating_is_remarked(irb140):
    """Once for all masses of a sweep: the sentence does not contain the mass."""
    for mass in (6.001, 6000.0):
        with pytest.warns(PayloadWarning, match=r"^the payload is above 6 kg, the rating of irb140$"):
            irb140.with_payload(twin.Payload(mass))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        irb140.with_payload(twin.Payload(6.0))
        twin.load("two_link").with_payload(twin.Payload(60.0))  # no rating is known


def test_a_robot_is_immutable():
    robot = twin.load("irb140")
    with pytest.raises(ValueError, match="read-only"):
        robot.q_min[0] = 0.0
    with pytest.raises(AttributeError):
        robot.name = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_mounting_in_degrees_about_the_y_axis_leans_the_arm_forward(irb140):
    for degrees, name in ((0, "floor"), ("-90", "wall"), (180.0, "inverted")):
        tilted, named = (irb140.mounted(where).gravity for where in (degrees, name))
        np.testing.assert_allclose(tilted, named, rtol=0, atol=2e-15)
    R = twin.rotations.matrix_from_euler([0.0, np.deg2rad(30.0), 0.0], "zyx")
    np.testing.assert_allclose(irb140.mounted("30").gravity, R.T @ irb140.gravity, rtol=0, atol=2e-15)
    for wrong in ("ceiling", float("nan")):
        told = "unknown mounting .* known are floor, wall, inverted, and degrees about the base"
        with pytest.raises(UnknownNameError, match=told):
            irb140.mounted(wrong)
    with pytest.raises(ValueError, match="gravity vector of 3 finite numbers"):
        irb140.with_gravity([0, 0])
