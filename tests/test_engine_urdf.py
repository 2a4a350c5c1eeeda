"""The traps of PyBullet that lie in a URDF and that `twin/engine_urdf.py` keeps shut, one test a trap.

Each test fails when its cure is taken out; the name says which trap is open again.
"""

import tempfile
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.small_robots import agrees, arm, inertial, one_step_error
from twin.engine import Simulation
from twin.engine_urdf import engine_urdf
from twin.kinematics import forward_kinematics, jacobian
from twin.robot import Payload
from twin.uncompiled import uncompiled
from twin.urdf_writer import rpy_from_matrix


def test_inertia_is_the_file_s_not_the_collision_shape_s(load, rng):
    shape = '<collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision>'
    assert agrees(load(arm(shape=shape)), rng)


def test_off_diagonal_inertia_is_brought_to_principal_axes(load, rng):
    """PyBullet's own diagonalisation is at its worst, some 1e-7, where two moments are nearly equal."""
    for _ in range(8):
        R = Rotation.random(rng=rng).as_matrix()
        T = R @ np.diag([0.1, 0.10001, 0.08]) @ R.T
        tilted = inertial(rpy="0.4 1.1 -2", tensor=(T[0, 0], T[1, 1], T[2, 2], T[0, 1], T[0, 2], T[1, 2]))
        assert agrees(load(arm(first=tilted, second=tilted)), rng)


def test_a_link_without_inertial_weighs_nothing(load, rng):
    text = arm().replace(inertial(0.0, tensor=np.zeros(6)), "")
    assert text.count("<inertial>") == 3
    assert agrees(load(text), rng)


@pytest.mark.parametrize("name", ["rod", "plate", "below zero"])
def test_an_inertia_at_the_edge_of_the_triangle_inequality_is_not_set_to_zero(load, rng, name):
    above = np.nextafter(0.1, 1)
    tensor = {
        "rod": (0, 0.1, above, 0, 0, 0),
        "plate": (0.1, 0.1, np.nextafter(0.2, 1), 0, 0, 0),
        "below zero": (-1e-18, 0.1, 0.1, 0, 0, 0),
    }[name]
    assert agrees(load(arm(second=inertial(tensor=tensor))), rng)


def test_a_payload_at_that_edge_keeps_its_inertia(irb140, rng):
    for _ in range(8):
        along = rng.normal(size=3)
        rod = Payload(6.0, [0, 0, 0.08], 0.5 * (along @ along * np.eye(3) - np.outer(along, along)))
        assert agrees(irb140.with_payload(rod), rng)


def test_an_axis_of_few_digits_is_made_unit(load, rng):
    assert agrees(load(arm(axis="0.70710 0.70711 0")), rng)


@pytest.mark.parametrize("dynamics", ['damping="0.5"', 'friction="2"', 'spring_stiffness="30"'])
def test_joint_dynamics_of_the_file_are_left_out(load, rng, dynamics):
    assert agrees(load(arm(dynamics=f"<dynamics {dynamics}/>")), rng)


def test_a_turned_inertial_frame_of_the_base_does_not_turn_the_jacobian(load, rng):
    robot = load(arm(base=inertial(rpy="0.5 0.6 0.7", tensor=(0.1, 0.12, 0.09, 0.02, 0, 0))))
    q = rng.uniform(-3, 3, 2)
    with Simulation(robot) as simulation:
        np.testing.assert_allclose(simulation.jacobian(q), jacobian(robot, q), atol=1e-13)
        simulation.reset(q)
        np.testing.assert_allclose(simulation.tool_pose(), forward_kinematics(robot, q), atol=1e-13)
        assert one_step_error(simulation, rng) < 1e-11


def test_a_robot_may_have_no_name(load, rng):
    assert agrees(load(arm().replace('<robot name="arm">', "<robot>")), rng)


def test_links_are_put_in_order_from_the_base(load, rng, tmp_path):
    lines = arm().splitlines()
    robot = load("\n".join([lines[0], *reversed(lines[1:-1]), lines[-1]]))
    assert agrees(robot, rng)
    # Read in the file's order, as URDF_MAINTAIN_LINK_ORDER does, children first would explode.
    text = engine_urdf(robot)
    assert [link.get("name") for link in ET.fromstring(text).findall("link")] == [
        "base",
        "one",
        "two",
        "tool0",
    ]
    assert [j.get("name") for j in ET.fromstring(text).findall("joint")] == ["shoulder", "elbow", "flange"]


def test_a_file_in_order_keeps_every_number(irb140):
    ours = ET.fromstring(engine_urdf(irb140))
    theirs = ET.parse(irb140.urdf).getroot()
    assert {tag: len(ours.findall(tag)) for tag in ("link", "joint")} == {"link": 8, "joint": 7}
    for tag in ("link", "joint"):
        texts = [
            {
                e.get("name"): ET.canonicalize(ET.tostring(e, encoding="unicode"), strip_text=True)
                for e in root.findall(tag)
            }
            for root in (ours, theirs)
        ]
        assert texts[0] == texts[1]


def test_a_file_without_line_breaks_keeps_its_names_and_numbers(load, rng):
    """PyBullet reads lines of 8 kB and puts a line break between them, wherever that is."""
    n = 60
    links = "".join(f'<link name="l{i}">{inertial(1.23456789)}</link>' for i in range(n + 1))
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="0 0 0.123456789"/><axis xyz="{i % 2} {(i + 1) % 2} 0"/>'
        '<limit lower="-1" upper="1" effort="10" velocity="1"/></joint>'
        for i in range(n)
    )
    robot = uncompiled(load(f'<robot name="long">{links}{joints}</robot>'))
    q = rng.uniform(-1, 1, n)
    with Simulation(robot) as simulation:
        simulation.reset(q)
        np.testing.assert_allclose(simulation.tool_pose(), forward_kinematics(robot, q), atol=1e-13)


def test_files_are_not_cached_by_their_path(irb140, tmp_path):
    path = tmp_path / "body.urdf"
    with Simulation(irb140) as simulation:
        client = simulation._client
        for mass in (1.0, 2.0):
            path.write_text(f'<robot name="body"><link name="base">{inertial(mass)}</link></robot>')
            assert client.getDynamicsInfo(client.loadURDF(str(path)), -1)[0] == mass


def test_meshes_are_found_from_elsewhere(load, rng, tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "flat.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    for name in ("meshes/flat.obj", "package://arm_description/meshes/flat.obj"):
        shape = f'<visual><geometry><mesh filename="{name}"/></geometry></visual>'
        assert str(tmp_path / "meshes" / "flat.obj") in engine_urdf(load(arm(shape=shape)))
        assert agrees(load(arm(shape=shape)), rng)


def test_the_temporary_file_is_removed(irb140, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Simulation(irb140):
        assert list(tmp_path.iterdir()) == []


def test_rpy_holds_at_a_pitch_of_a_right_angle(rng):
    """Near it roll and yaw are each ill-defined: read one by one from a rounded matrix they miss by 1e-7."""
    for distance in (0.0, 1e-16, 1e-12, 1e-9, 1e-5, 0.3) * 10:
        roll, yaw = rng.uniform(-3, 3, 2)
        pitch = rng.choice([-1, 1]) * (np.pi / 2 - distance)
        Q = Rotation.random(rng=rng).as_matrix()
        R = Rotation.from_euler("xyz", [roll, pitch, yaw]).as_matrix() @ Q @ Q.T  # with rounding errors
        back = Rotation.from_euler("xyz", rpy_from_matrix(R)).as_matrix()
        np.testing.assert_allclose(back, R, rtol=0, atol=2e-15)
