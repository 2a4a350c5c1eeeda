"""The traps of PyBullet that `twin/engine.py` and `twin/engine_urdf.py` keep shut, one test a trap.

Each test fails when its cure is taken out; the name says which trap is open again.
"""

import tempfile
import time
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pybullet
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.random_trees import interpreted, random_urdf
from twin.analytic_plant import AnalyticPlant
from twin.dynamics import forward_dynamics
from twin.engine import Simulation
from twin.engine_urdf import engine_urdf, rpy_from_matrix
from twin.errors import RobotError, TwinError
from twin.kinematics import forward_kinematics, jacobian
from twin.robot import Payload

WEIGHTLESS = (0.0, 0.0, 0.0)
BALL = (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)


def inertial(mass=2.0, com="0.1 0.05 0.2", rpy="0 0 0", tensor=BALL):
    xx, yy, zz, xy, xz, yz = (repr(float(x)) for x in tensor)
    return (
        f'<inertial><origin xyz="{com}" rpy="{rpy}"/><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="{xy}" ixz="{xz}" iyz="{yz}"/></inertial>'
    )


def joint(name, parent, child, kind="revolute", axis="0 0 1", inside=""):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.1 0.2 0.3" rpy="0.3 -0.2 0.1"/><axis xyz="{axis}"/>'
        f'<limit lower="-1" upper="1" effort="100" velocity="3"/>{inside}</joint>'
    )


LUMP = inertial()


def arm(base=LUMP, first=LUMP, second=LUMP, axis="0 0 1", dynamics="", shape=""):
    """URDF text of two links on a base, with a frame at the end that nobody gave an inertial."""
    return "\n".join(
        [
            '<robot name="arm">',
            f'<link name="base">{base}</link>',
            f'<link name="one">{first}{shape}</link>',
            f'<link name="two">{second}</link>',
            f'<link name="tool0">{inertial(0.0, tensor=np.zeros(6))}</link>',
            joint("shoulder", "base", "one", axis=axis, inside=dynamics),
            joint("elbow", "one", "two", axis="0 1 0"),
            joint("flange", "two", "tool0", kind="fixed"),
            "</robot>",
        ]
    )


ROTOR = f"""
<robot name="rotor">
  <link name="base">{inertial()}</link>
  <link name="wheel">{inertial(com="0 0 0")}</link>
  <joint name="axle" type="revolute"><parent link="base"/><child link="wheel"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="100" velocity="3"/></joint>
</robot>"""


@pytest.fixture
def load(tmp_path):
    def from_text(text, name="robot.urdf"):
        path = tmp_path / name
        path.write_text(text)
        return interpreted(twin.load(path))

    return from_text


def one_step_error(simulation, rng, states=10):
    """The largest relative error of the acceleration of one step, over random states."""
    robot, dt, worst = simulation.robot, simulation.time_step, 0.0
    for _ in range(states):
        q, qd, tau = rng.uniform(-3, 3, robot.n), rng.uniform(-2, 2, robot.n), rng.uniform(-9, 9, robot.n)
        simulation.reset(q, qd)
        simulation.step(tau)
        q_next, qd_next = simulation.state()
        qdd = forward_dynamics(robot, q, qd, tau)
        worst = max(worst, np.max(np.abs((qd_next - qd) / dt - qdd)) / np.max(np.abs(qdd)))
        np.testing.assert_array_equal(q_next, q + dt * qd_next)
    return worst


@pytest.fixture
def rng():
    return np.random.default_rng(140)


def agrees(robot, rng):
    with Simulation(robot) as simulation:
        return one_step_error(simulation, rng) < 1e-11


# ---- the file ------------------------------------------------------------------------------------


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
                e.get("name"): ET.canonicalize(ET.tostring(e, encoding="unicode").strip())
                for e in root.findall(tag)
            }
            for root in (ours, theirs)
        ]
        assert texts[0] == texts[1]


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


# ---- the joints ----------------------------------------------------------------------------------


def coasted(robot, qd, steps=200):
    with Simulation(robot.with_gravity(WEIGHTLESS)) as simulation:
        simulation.reset([0.0], [qd])
        for _ in range(steps):
            simulation.step(np.zeros(1))
        return simulation.state()


def test_no_motor_and_no_damping_slow_a_wheel_down(load):
    assert coasted(load(ROTOR), 2.0)[1] == 2.0


def test_no_speed_is_cut_off(load):
    assert coasted(load(ROTOR), 5000.0, steps=3)[1] == 5000.0


def test_joint_limits_do_not_stop_a_joint(load):
    q, qd = coasted(load(ROTOR), 30.0)
    assert qd == 30.0
    np.testing.assert_allclose(q, 30.0 * 200e-3, rtol=1e-13)


def test_torque_acts_at_every_step_and_no_longer(load):
    with Simulation(load(ROTOR).with_gravity(WEIGHTLESS)) as simulation:
        simulation.reset([0.0])
        for _ in range(100):
            simulation.step(np.array([0.3]))
        np.testing.assert_allclose(simulation.state()[1], 100 * 1e-3 * 0.3 / 0.1, rtol=1e-13)
        before = simulation.state()[1]
        simulation._advance()  # a step that no torque was given for
        assert simulation.state()[1] == before


# ---- reading and acting --------------------------------------------------------------------------


def test_the_tool_pose_is_double_precision_and_of_this_step(irb140, rng):
    T_flange_tool = np.eye(4)
    T_flange_tool[:3, 3] = [0.1, -0.05, 0.2]
    with Simulation(irb140) as simulation:
        simulation.reset(rng.uniform(-1, 1, 6), rng.uniform(-3, 3, 6))
        for _ in range(20):
            simulation.step(rng.uniform(-20, 20, 6))
            T = forward_kinematics(irb140, simulation.state()[0], T_flange_tool)
            np.testing.assert_allclose(simulation.tool_pose(T_flange_tool), T, atol=1e-13)


def test_the_jacobian_is_the_tool_s_not_the_centre_of_mass_s(load, irb140, rng):
    T_flange_tool = np.eye(4)
    T_flange_tool[:3, 3] = [0.1, -0.05, 0.2]
    tilted = inertial(rpy="0.4 1.1 -2", tensor=(0.1, 0.12, 0.09, 0, 0, 0))
    for robot in (irb140, load(arm(second=tilted))):
        q = rng.uniform(-3, 3, robot.n)
        with Simulation(robot) as simulation:
            J = simulation.jacobian(q, T_flange_tool)
        np.testing.assert_allclose(J, jacobian(robot, q, T_flange_tool), atol=1e-13)


def test_a_wrench_acts_where_the_tool_is_now(irb140, rng):
    """After a step the engine's own link poses are one step old, and so would be the point of attack."""
    wrench, tau = np.array([30.0, -20.0, 10.0, 0.3, 0.2, -0.1]), np.zeros(6)
    twin_of_it = AnalyticPlant(irb140)
    with Simulation(irb140) as simulation:
        for plant in (simulation, twin_of_it):
            plant.reset(np.full(6, 0.4), np.full(6, 2.0))
            for _ in range(20):
                plant.step(tau, wrench)
            plant.step(tau)  # and is gone in a step without it
        for ours, theirs in zip(twin_of_it.state(), simulation.state(), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


# ---- the world -----------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["wall", "inverted"])
def test_mounting_turns_gravity_and_leaves_the_base(irb140, rng, where):
    robot = irb140.mounted(where)
    q = rng.uniform(-2, 2, 6)
    with Simulation(robot) as simulation:
        np.testing.assert_allclose(simulation.jacobian(q), jacobian(irb140, q), atol=1e-13)
        simulation.reset(q)
        np.testing.assert_allclose(simulation.tool_pose(), forward_kinematics(irb140, q), atol=1e-13)
        assert one_step_error(simulation, rng) < 1e-11


def test_two_simulations_are_two_worlds(irb140, rng):
    heavy = irb140.with_payload(Payload(6.0, [0.0, 0.0, 0.08])).mounted("wall")
    with Simulation(irb140) as one, Simulation(heavy, time_step=2e-3) as other:
        for _ in range(3):
            assert one_step_error(one, rng, 2) < 1e-11
            assert one_step_error(other, rng, 2) < 1e-11


def test_a_later_simulation_answers_for_its_own_robot(irb140, load, rng):
    """PyBullet caches the model behind its inverse dynamics and Jacobian; payloads must not go through it."""
    robots = (irb140, load(arm()), irb140.with_payload(Payload(6.0, [0.0, 0.0, 0.08])), load(arm()))
    for robot in robots:
        q = rng.uniform(-3, 3, robot.n)
        with Simulation(robot) as simulation:
            np.testing.assert_allclose(simulation.jacobian(q), jacobian(robot, q), atol=1e-13)
            assert one_step_error(simulation, rng) < 1e-11
            np.testing.assert_allclose(simulation.jacobian(q), jacobian(robot, q), atol=1e-13)


def test_payload_is_a_part_of_what_is_loaded(irb140):
    body = Payload(6.0, [0.01, 0.02, 0.08], np.diag([0.03, 0.02, 0.01]))
    names = [
        link.get("name") for link in ET.fromstring(engine_urdf(irb140.with_payload(body))).findall("link")
    ]
    assert names[-1] == "payload"
    assert engine_urdf(irb140.with_payload(body).with_payload(None)) == engine_urdf(irb140)


@pytest.mark.parametrize("seed", range(6))
def test_any_tree_is_simulated_exactly(load, seed):
    rng = np.random.default_rng(seed)
    robot = load(random_urdf(rng, 7, kinds=("revolute", "continuous", "prismatic")))
    q = rng.uniform(-3, 3, robot.n)
    with Simulation(robot) as simulation:
        assert one_step_error(simulation, rng) < 1e-11
        simulation.reset(q)
        np.testing.assert_allclose(simulation.tool_pose(), forward_kinematics(robot, q), atol=1e-13)
        np.testing.assert_allclose(simulation.jacobian(q), jacobian(robot, q), atol=1e-13)


def test_joints_are_found_by_name(load, rng):
    """A tree may count its joints in another order than PyBullet does, as long as parents come first."""
    legs = [
        joint(name, parent, name[0])
        for name, parent in (("a1", "base"), ("b1", "a"), ("c1", "base"), ("d1", "c"))
    ]
    links = [f'<link name="{name}">{inertial(2.0 + k)}</link>' for k, name in enumerate("abcd")]
    robot = load("\n".join(['<robot name="legs"><link name="base"/>', *links, *legs, "</robot>"]))
    order = [2, 0, 3, 1]
    tree = robot.tree
    assert [tree.names[i] for i in order] == ["c1", "a1", "d1", "b1"]
    shuffled = replace(
        tree,
        names=tuple(tree.names[i] for i in order),
        parents=tuple(order.index(p) if (p := tree.parents[i]) >= 0 else -1 for i in order),
        T_parent_joint=tree.T_parent_joint[order],
        inertias=tree.inertias[order],
        flange_joint=order.index(tree.flange_joint),
    )
    robot = interpreted(replace(robot, tree=shuffled))
    q = rng.uniform(-3, 3, 4)
    with Simulation(robot) as simulation:
        assert one_step_error(simulation, rng) < 1e-11
        np.testing.assert_allclose(simulation.jacobian(q), jacobian(robot, q), atol=1e-13)


# ---- manners -------------------------------------------------------------------------------------


def test_nothing_is_printed(irb140, capfd):
    with Simulation(irb140) as simulation:
        simulation.step(np.zeros(6))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("time_step", [0.0, -1e-3, np.nan, np.inf])
def test_a_time_step_that_is_none(irb140, time_step):
    with pytest.raises(ValueError, match="time step above 0 s"):
        Simulation(irb140, time_step=time_step)


def test_wrong_arguments(irb140):
    with Simulation(irb140) as simulation:
        for call in (simulation.reset, simulation.step, simulation.jacobian):
            with pytest.raises(ValueError, match=r"of shape \(6,\), got \(5,\)"):
                call(np.zeros(5))
        with pytest.raises(ValueError, match=r"tau of shape \(6,\), got \(1, 6\)"):
            simulation.step(np.zeros((1, 6)))
        with pytest.raises(ValueError, match="q to be finite"):
            simulation.reset(np.full(6, np.nan))
        with pytest.raises(ValueError, match=r"finite wrench of shape \(6,\)"):
            simulation.step(np.zeros(6), np.full(6, np.inf))
        with pytest.raises(ValueError, match=r"points of shape \(N, 3\)"):
            simulation.draw_path(np.zeros(3))


def test_a_closed_simulation_says_so(irb140):
    simulation = Simulation(irb140)
    simulation.close()
    simulation.close()
    with Simulation(irb140) as other:  # which gets the number of the closed one
        other.reset(np.ones(6))
        for call in (simulation.state, simulation.tool_pose, simulation.picture):
            with pytest.raises(TwinError, match="closed already"):
                call()
        for call in (simulation.reset, simulation.step, simulation.jacobian):
            with pytest.raises(TwinError, match="closed already"):
                call(np.zeros(6))
        np.testing.assert_array_equal(other.state()[0], np.ones(6))


def test_an_error_of_pybullet_is_named(irb140, monkeypatch):
    def refuse(*_, **__):
        raise pybullet.error("out of sorts")

    with Simulation(irb140) as simulation:
        monkeypatch.setattr(simulation, "_read", refuse)
        with pytest.raises(TwinError, match="PyBullet: out of sorts"):
            simulation.state()


def test_a_file_that_pybullet_cannot_load(irb140, monkeypatch):
    monkeypatch.setattr("twin.engine.engine_urdf", lambda _: "<robot/>")
    with pytest.raises(RobotError, match=r"irb140\.urdf: PyBullet cannot load it"):
        Simulation(irb140)


def test_real_time_keeps_pace_with_the_clock(irb140):
    with Simulation(irb140, real_time=True) as simulation:
        simulation.reset(np.zeros(6))
        began = time.perf_counter()
        for _ in range(60):
            simulation.step(np.zeros(6))
        assert time.perf_counter() - began >= 0.055


def test_a_picture_shows_the_robot(irb140):
    with Simulation(irb140) as simulation:
        simulation.reset(np.zeros(6))
        first = simulation.picture(160, 120)
        simulation.reset(np.array([1.0, 0.5, 0, 0, 0, 0]))
        second = simulation.picture(160, 120)
        close = simulation.picture(160, 120, distance=0.8, target=[0, 0, 0.3], yaw_deg=0, pitch_deg=-80)
    assert first.shape == (120, 160, 3)
    assert first.dtype == np.uint8
    orange = (first[..., 0] > 1.5 * first[..., 2] + 30).sum()
    assert orange > 200, "the arm is orange"
    assert (first != second).any()
    assert (close[..., 0] > 1.5 * close[..., 2] + 30).sum() > orange


def test_a_failed_step_leaves_nothing_behind(irb140):
    """Not even the wrench that came with a torque of the wrong shape."""
    with Simulation(irb140) as simulation:
        after = []
        for fails in (False, True):
            simulation.reset(irb140.poses["test_1"])
            if fails:
                with pytest.raises(ValueError, match="expected tau of shape"):
                    simulation.step(np.zeros(5), wrench=np.full(6, 50.0))
            simulation.step(np.zeros(6))
            after.append(simulation.state()[1])
    assert np.array_equal(*after)
