"""Odd statements of a URDF: what PyBullet and Pinocchio make of them counts, and a warning names it."""

import warnings
from pathlib import Path

import numpy as np
import pybullet_data
import pytest

import twin
from scenarios.judging.agreement import agreement
from scenarios.report.model_report import read_otherwise
from scenarios.setup import Setup
from tests.support.foreign_urdf import chain, fingers, joint, link, robot
from tests.support.peers import Pinocchio
from tests.support.random_trees import interpreted
from tests.support.small_robots import one_step_error
from twin.base.errors import ModelWarning, TwinError
from twin.physics.engine.client import file_dynamics
from twin.physics.multibody.tree import consistent_moments
from twin.physics.robot.model_check import check_model

ARMS = Path(pybullet_data.getDataPath())


def inertial(mass, xx, yy, zz):
    """Return an <inertial> with principal moments about the link's axes."""
    tensor = f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/>'
    return f'<inertial><mass value="{mass}"/>{tensor}</inertial>'


SPIN, WIDE, FRAME = inertial(0, 0.3, 0.2, 0.4), inertial(0.04, 0.1, 0.1, 0.1), inertial(0, 0, 0, 0)


def lean(zz):
    """Return a body whose largest moment is above the sum of the others, 0.03 kg m^2."""
    return inertial(1, 0.01, 0.02, zz)


def body(inertial, kind="fixed"):
    """Return an arm of three joints whose tool carries a body, fixed or moved."""
    glue = joint("glue", "link_3", "body", kind, xyz="0.1 0 0.2", rpy="0.3 0.2 0.1")
    return robot(chain(3), link("body", None, inertial), glue)


def turned(rpy, tip=FRAME, kind="revolute"):
    """Return an arm whose last joint is turned by printed angles, with a tip."""
    last = joint("last", "link_2", "tool", kind, rpy=rpy, xyz="0 0 0.5")
    glue = joint("glue", "tool", "tip", "fixed", xyz="0 0.1 0.1")
    return robot(chain(2), link("tool"), last, link("tip", None, tip), glue)


ODD = [
    (body(SPIN), "link 'body': an inertia of up to 0.4 kg m^2 without a mass, which no body has; it co"),
    (body(lean(0.0306)), "link 'body': moments of inertia that no body has, changed by up to 0.91 % to"),
    (body(WIDE), "link 'body': 0.04 kg and moments as of a body of radius 1.6 m, on an arm of "),
    (turned("1.571 0 0"), "read as multiples of 15 degrees: joint 'last': rpy 1.571; as printed, the to"),
    (
        turned("1.571 0 0", kind="fixed"),
        "joint 'last': rpy 1.571; as printed, the tool frame would be up to 0",
    ),
    (robot(chain(3), fingers("link_3")), "joint 'left_finger_joint' moves freely, but not the tool f"),
]


@pytest.mark.parametrize(("text", "expected"), ODD)
def test_odd_statements_are_one_warning_on_loading_and_a_finding_of_the_check(tmp_path, text, expected):
    path = tmp_path / "arm.urdf"
    path.write_text(text)
    with pytest.warns(ModelWarning) as found:
        arm = twin.load(path)
    assert arm.has_inertia
    said = [str(one.message) for one in found if one.category is ModelWarning]
    assert [expected in one for one in said] == [True], said
    notes = [finding.text for finding in check_model(path).findings]
    assert "of a body of radius" in expected or sum(expected in note for note in notes) == 1, notes


@pytest.mark.parametrize("kind", ["fixed", "revolute"])
def test_inertia_without_mass_counts_as_in_pybullet_and_pinocchio(load, tmp_path, rng, kind):
    arm = load(body(SPIN, kind))
    peer = Pinocchio(tmp_path / "robot.urdf", arm.joint_names)
    q = rng.uniform(-2, 2, (4, arm.n))
    M, (read, _) = twin.mass_matrix(arm, q), file_dynamics(arm, q)
    np.testing.assert_allclose(M, [peer.mass_matrix(one) for one in q], rtol=0, atol=1e-12)
    np.testing.assert_allclose(M, read, rtol=0, atol=1e-6)
    with twin.Simulation(arm) as simulation:
        assert one_step_error(simulation, rng, 3) < 1e-11


def test_the_panda_of_pybullet_is_that_of_pybullet():
    """Two links without mass have 0.1 kg m^2 each: 0.6 instead of 0.4 about axis 7."""
    panda = interpreted(twin.load(ARMS / "franka_panda" / "panda.urdf"))
    q = np.array([[0.1, 0.5, 0.2, -1.5, 0.3, 1.0, 0.2, 0.01]])
    M, (read, tools) = twin.mass_matrix(panda, q), file_dynamics(panda, q)
    np.testing.assert_allclose(M, read, rtol=0, atol=1e-10)
    assert M[0, 6, 6] == pytest.approx(0.6, abs=1e-3)
    np.testing.assert_allclose(tools, twin.forward_kinematics(panda, q)[:, :3, 3], rtol=0, atol=2e-7)


def test_nearest_moments_are_the_projection_on_those_of_bodies(rng):
    """The rest is normal to the cone of bodies: to its point, and to no edge at an acute angle."""
    edges = np.ones((3, 3)) - np.eye(3)
    for given in rng.uniform(-0.2, 1, (300, 3)):
        nearest = consistent_moments(given.copy())
        rest = given - nearest
        assert np.max(2 * nearest) <= nearest.sum() + 1e-15
        assert abs(rest @ nearest) < 1e-14
        assert np.max(edges @ rest) < 1e-14


def test_an_impossible_tensor_is_the_nearest_one_within_5_percent(load, tmp_path):
    for zz, possible in ((0.03, True), (0.0306, True), (0.0315, True), (0.0317, False)):
        assert load(body(lean(zz))).has_inertia == possible
    assert Setup(robot=str(tmp_path / "robot.urdf"), unphysical=True).nominal_robot().has_inertia
    for excess in (0.0001, 0.0006):
        near = load(body(lean(0.03 + excess)))
        added = near.tree.inertias[2] - twin.load(tmp_path / "robot.urdf", unphysical=True).tree.inertias[2]
        assert added[4:7].sum() == pytest.approx(excess / 3, rel=1e-9)  # +1, +1, -1 thirds of it


def test_the_check_compares_with_the_file_as_pybullet_reads_it(tmp_path):
    """A link without <inertial> has 1 kg there, and printed angles are not read as quarter turns."""
    path = tmp_path / "arm.urdf"
    for text, different in ((turned("0.3 0 0"), 0), (turned("1.571 0 0"), 1), (turned("0.3 0 0", ""), 1)):
        path.write_text(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            found = agreement(twin.load(path))
        assert found.passes
        assert len(read_otherwise(found)) == different, found
        turn = (1.571 - np.pi / 2) * ("1.571" in text)  # of the tip, which is 0.14 m beside the axis of x
        assert found.file_tool == pytest.approx(turn * np.hypot(0.1, 0.1), abs=1e-6)


def test_a_file_that_pybullet_cannot_read_passes_the_check_with_a_warning(tmp_path):
    """PyBullet refuses a robot without a name, and inertias that rounding leaves unsymmetric by 1e-14."""
    path = tmp_path / "arm.urdf"
    path.write_text(turned("0.3 0 0").replace('<robot name="arm">', "<robot>"))
    arm = twin.load(path)
    with pytest.raises(TwinError, match="PyBullet cannot read"):
        file_dynamics(arm, np.zeros((1, 3)))
    found = agreement(arm)
    assert found.passes
    (warning,) = read_otherwise(found)
    assert warning.severity == "warning"
    assert warning.text.startswith("PyBullet itself cannot read this file")
