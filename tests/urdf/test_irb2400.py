"""The IRB 2400: a parallelogram whose range nobody knows, published masses, its published model."""

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

import twin
from scenarios.judging.motion_range import arm_metrics, random_positions
from tests.support.urdf_files import UrdfFile
from twin.base.errors import LimitError
from twin.physics.engine.simulation import Simulation
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.limits import check_position
from twin.physics.robot.loops import open_chain
from twin.studies.cell.cell import arm_solids
from urdf.facts import FactsError, parsed

FILE = UrdfFile("irb2400")

# The joints of abb_irb2400_support in ros-industrial/abb, a serial arm: origin in the frame before, axis.
PUBLISHED_JOINTS = (
    ((0, 0, 0), (0, 0, 1)),
    ((0.1, 0, 0.615), (0, 1, 0)),
    ((0, 0, 0.705), (0, 1, 0)),
    ((0, 0, 0.135), (1, 0, 0)),
    ((0.755, 0, 0), (0, 1, 0)),
    ((0, 0, 0), (1, 0, 0)),
)
# Obal and Gierlak 2025, links 1 to 6, in [kg]; centres of links 1 to 3 in their modified DH frames, in [mm].
MASSES = [192, 26.5, 25.7, 29.7, 2.8, 0.8]
CENTRES = [[21, 22, -188.5], [253.4, 47.7, 7], [139.5, -99.5, -9.7]]
BY_VOLUME = [146, 44, 40, 18, 1.0, 0.3]


@pytest.fixture(scope="module")
def arm():
    return uncompiled(twin.load("irb2400"))


@pytest.fixture(scope="module")
def poses(arm):
    return random_positions(arm, np.random.default_rng(2400), 50)


def published_flange(angles):
    """Pose (4, 4) of the flange of the published serial arm."""
    T = np.eye(4)
    for (origin, axis), angle in zip(PUBLISHED_JOINTS, angles, strict=True):
        step = np.eye(4)
        step[:3, 3], step[:3, :3] = origin, Rotation.from_rotvec(angle * np.array(axis)).as_matrix()
        T = T @ step
    T_tool = np.eye(4)
    T_tool[:3, 3], T_tool[:3, :3] = (0.085, 0, 0), Rotation.from_euler("y", np.pi / 2).as_matrix()
    return T @ T_tool


def test_joint_3_of_the_published_serial_arm_is_relative(arm, poses):
    """It turns by q3 - q2, Norrlöf 1999, eq. (2.25); with the absolute q3 the flange is elsewhere."""
    chain = uncompiled(open_chain(arm))
    for q in poses:
        T, serial = twin.forward_kinematics(arm, q), q - np.array([0, 0, q[1], 0, 0, 0])
        np.testing.assert_allclose(T, published_flange(serial), rtol=0, atol=2e-15)
        np.testing.assert_allclose(twin.forward_kinematics(chain, serial), T, rtol=0, atol=2e-15)
        assert abs(published_flange(q) - T).max() > 1e-3 * abs(q[1])


def test_the_engine_holds_the_loop(arm, poses):
    """To 1e-10 m, also 10 degrees from the fold, at the speed limits and with torques of 50 rad/s^2."""
    rng = np.random.default_rng(1)
    near = np.array([[0, -20, 60, 0, 30, 0], [0, 90, 10.1, 0, 30, 0]]) * np.pi / 180
    with Simulation(arm) as simulation:
        for q in (*poses[:5], *near):
            simulation.reset(q, arm.qd_max * rng.uniform(-1, 1, 6))
            tau = twin.inverse_dynamics(arm, q, np.zeros(6), rng.uniform(-50, 50, 6))
            try:
                for _ in range(20):
                    simulation.step(tau)
                    assert simulation.loop_gap < 1e-10
            except LimitError:
                continue  # the range ends before the fold


def test_reach_is_that_of_60_degrees_between_the_arms(arm):
    """1.572 m stretched, at q3 - q2 = -79.9 degrees; the sheet's 1.55 m is the farthest that -60.0 admits."""
    _, a2, a3 = arm.dh.a[:3]
    forearm, bend = math.hypot(a3, arm.dh.d[3]), math.atan2(a3, arm.dh.d[3])

    def farthest(angle):
        q2 = np.radians(np.linspace(30, 110, 40_001))
        return float(np.max(arm.dh.a[0] + a2 * np.sin(q2) + forearm * np.cos(q2 - angle - bend)))

    assert farthest(math.pi / 2 - bend) == pytest.approx(1.572, abs=5e-4)
    assert math.degrees(math.pi / 2 - bend) == pytest.approx(79.9, abs=0.05)
    angle = brentq(lambda angle: farthest(angle) - arm.rating.reach, 0.9, 1.3)
    assert math.degrees(angle) == pytest.approx(60.0, abs=0.05)
    stretched = np.array([0, math.pi / 2, bend, 0, 0, 0])
    wrist = twin.forward_kinematics(arm, stretched) @ [0, 0, -arm.dh.d[5], 1]
    assert wrist[0] == pytest.approx(arm.dh.a[0] + a2 + forearm, abs=1e-15)
    with pytest.raises(LimitError, match=r"q3 - q2\) would be at -85 deg .* from folding parallelogram flat"):
        check_position(arm, np.deg2rad([0, 100, 15, 0, 0, 0]))


def test_the_angle_between_the_arms_is_reported_and_not_judged(arm, irb1400):
    """On this arm alone: the IRB 1400 has an estimated range, and an open chain no such angle."""
    (joint,) = arm.unjudged
    assert arm.tree.names[joint] == "joint_elbow"
    assert not irb1400.unjudged
    assert not open_chain(arm).unjudged
    q = np.zeros((3, 6))
    q[1, 1:3] = 0.5, -0.25
    for robot, expected in ((arm, [0.75]), (irb1400, [])):
        log = SimpleNamespace(robot=robot, q=q, qd=0 * q, t=np.arange(3.0), violations=lambda: ())
        angles = [metric for metric in arm_metrics(log) if metric.name == "largest angle q3 - q2"]
        assert [metric.value for metric in angles] == expected
        assert {metric.outcome for metric in angles} <= {"not judged"}


def test_a_range_that_is_not_judged_needs_its_reason_and_a_passive_joint():
    text, lever = FILE.toml.read_text(encoding="utf-8"), 'child = "lever"'
    for old, new, told in (
        (lever, f'{lever}\nunjudged = "so"', "joint_3.unjudged: a motor drives this joint"),
        ('unjudged = "no', "unjudged = 5 # no", "joint.joint_elbow.unjudged: expected a text, got 5"),
        ("range_deg = [-80, 80]\nunj", "unj", "[joint.joint_elbow] lacks the key 'range_deg'"),
    ):
        assert old in text
        with pytest.raises(FactsError, match=re.escape(told)):
            parsed(FILE.toml, text.replace(old, new, 1))


def test_masses_are_the_published_and_add_up_to_the_data_sheet_s():
    links = {link: "base_link" if link == "base" else f"link_{link}" for link in FILE.facts["link"]}
    masses = {link: FILE.body(name).mass for link, name in links.items()}
    assert [masses[str(k)] for k in range(1, 7)] == MASSES
    assert sum(masses.values()) == pytest.approx(380, abs=1e-12)
    ratios = np.array(MASSES) / BY_VOLUME  # what a share by volume is worth
    assert [round(ratio, 1) for ratio in ratios] == [1.3, 0.6, 0.6, 1.6, 2.8, 2.7]


def test_centres_of_the_first_links_are_the_published():
    """Modified DH frames at the zero pose: link 1's like the base, of 2 and 3 with x up and y forward."""
    links = FILE.facts["link"]
    for link, origin, centre in zip("123", [(0, 0.615), (0.1, 0.615), (0.1, 1.320)], CENTRES, strict=True):
        x, y, z = (0.001 * value for value in centre)
        along = (x, y, z) if link == "1" else (y, z, x)
        expected = np.add(along, (origin[0], 0, origin[1]))
        np.testing.assert_allclose(links[link]["com"], expected, rtol=0, atol=1e-12)


def test_covers_move_with_their_links(arm):
    """Covers are compared by link at the zero pose: joint_3 moves the lever, and joint_elbow link 3."""
    zero = FILE.poses(np.zeros(6)) | {"base": np.eye(4)}
    for link, values in FILE.facts["link"].items():
        name = "base" if link == "base" else f"link_{link}"
        found = [(zero[name] @ one.T)[:3, 3] for one in arm_solids(arm) if one.name == name]
        ends = [(one.get("from", one.get("at")), one.get("to", one.get("at"))) for one in values["cover"]]
        np.testing.assert_allclose(found, np.mean(ends, axis=1), rtol=0, atol=1e-12)
