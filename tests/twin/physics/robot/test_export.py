"""Exported URDFs: the same tree when loaded again, and the same torques in other libraries.

Exported MJCF: MuJoCo's torques, accelerations and steps are those of the twin.
"""

import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace

import mujoco
import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import twin
from tests.support.parts_of_an_arm import arm_with
from tests.support.peers import MuJoCo, MuJoCoFile, Pinocchio, Reduced
from tests.support.random_trees import random_urdf
from tests.support.refusals import refused
from tests.support.sample_loads import BODY
from tests.support.small_robots import arm, inertial, joint
from twin.base.errors import ExportWarning, RobotError
from twin.physics.multibody.axis_torques import Cylinder, Spring
from twin.physics.multibody.tree import frozen
from twin.physics.robot import open_chain, write_mjcf, write_urdf
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.export import urdf_document
from twin.physics.robot.link_shapes import link_shapes


def exported(robot, folder, name="exported.urdf"):
    """Write a robot's URDF, and return its path."""
    return write_urdf(robot, folder / name)[0]


def assert_same_tree(found, tree):
    for name in ("names", "links", "kinds", "parents", "flange_joint"):
        assert getattr(found, name) == getattr(tree, name), name
    for name in ("T_parent_joint", "axes", "T_joint_flange", "base_inertia"):
        np.testing.assert_allclose(getattr(found, name), getattr(tree, name), rtol=0, atol=1e-15)
    for row, expected in zip(found.inertias, tree.inertias, strict=True):
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-15 * np.max(np.abs(expected)))


@pytest.mark.filterwarnings("ignore:a URDF leaves out. closed loops")
@pytest.mark.parametrize("name", ["irb140", "irb1400", "manutec_r3", "rtr", "rx90"])
def test_the_file_loads_as_the_same_robot(name, tmp_path, rng):
    robot = twin.load(name)
    robot = robot.with_payload(BODY) if robot.has_inertia else robot
    path = exported(robot, tmp_path)
    found, driven = twin.load(path), list(robot.driven)
    assert (found.name, found.has_inertia) == (robot.name, robot.has_inertia)
    assert_same_tree(found.tree, robot.tree)
    for limit in ("q_min", "q_max", "qd_max", "tau_max"):
        np.testing.assert_array_equal(getattr(found, limit)[driven], getattr(robot, limit))
    passive = list(robot.passive)
    np.testing.assert_array_equal(found.q_max[passive], robot.passive_max)
    np.testing.assert_array_equal(found.q_min[passive], robot.passive_min)
    if name.startswith("irb"):
        q, qd, qdd = rng.normal(size=(3, 6))
        expected = twin.inverse_dynamics(robot, q, qd, qdd)
        for library in (Pinocchio(path, robot.tree.names), MuJoCo(path)):
            tau = Reduced(robot, library).inverse_dynamics(q, qd, qdd)
            np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))


def test_a_random_tree_loads_as_the_same_robot_with_its_fixed_links_merged(load, tmp_path, rng):
    robot = load(random_urdf(rng, 7)).with_payload(BODY)
    path = exported(robot, tmp_path)
    assert_same_tree(twin.load(path).tree, robot.tree)
    root, given = ET.parse(path).getroot(), ET.parse(robot.urdf).getroot()
    names = {link.get("name") for link in given.iterfind("link")}
    masses = {link.get("name"): float(link.find("inertial/mass").get("value")) for link in root.iter("link")}
    assert set(masses) == names | {"payload"}
    fixed = {name for name in names if name.startswith(("extra", "tool0"))}
    assert {name for name, mass in masses.items() if mass == 0} == fixed
    assert len(fixed) > 1


def test_geometry_of_the_robot_replaces_that_of_the_file(load, tmp_path, rng):
    weld = f'<link name="between"/>{joint("weld", "one", "between", kind="fixed")}</robot>'
    text = arm().replace('parent link="one"', 'parent link="between"').replace("</robot>", weld)
    robot = load(text)
    T = robot.tree.T_parent_joint.copy()
    T[:, :3, 3] += 1e-3 * rng.normal(size=(2, 3))
    T[1, :3, :3] = T[0, :3, :3] @ T[1, :3, :3]
    axes = robot.tree.axes[:, [2, 0, 1]]
    moved = replace(robot, tree=replace(robot.tree, T_parent_joint=frozen(T), axes=frozen(axes)))
    assert_same_tree(twin.load(exported(moved, tmp_path)).tree, moved.tree)


def test_names_and_elements_of_the_file_stay_and_joint_friction_goes(load, tmp_path):
    text = arm(dynamics='<dynamics damping="3"/><mimic joint="elbow" multiplier="-1"/>')
    text = text.replace("</robot>", '<transmission name="motor"/></robot>')
    root = ET.parse(exported(load(text), tmp_path)).getroot()
    shoulder = root.find("joint[@name='shoulder']")
    assert shoulder.find("mimic").attrib == {"joint": "elbow", "multiplier": "-1"}
    assert shoulder.find("dynamics") is None
    assert root.find("transmission") is not None
    assert root.get("name") == "arm"


def test_a_joint_without_a_range_turns_endlessly_and_a_rate_of_zero_is_no_limit(load, tmp_path):
    robot = load(arm())
    endless, none = frozen([-np.inf, -1]), frozen([np.inf, np.inf])
    robot = replace(robot, q_min=endless, q_max=frozen([np.inf, 2]), qd_max=none, tau_max=none)
    path = exported(robot, tmp_path)
    kinds = {joint.get("name"): joint.get("type") for joint in ET.parse(path).iter("joint")}
    limit = ET.parse(path).find("joint[@name='shoulder']/limit")
    assert limit.attrib == {"velocity": "0", "effort": "0"}  # ROS requires both
    assert kinds == {"shoulder": "continuous", "elbow": "revolute", "flange": "fixed"}
    found = twin.load(path)
    for limit in ("q_min", "q_max", "qd_max", "tau_max"):
        np.testing.assert_array_equal(getattr(found, limit), getattr(robot, limit))


def test_a_second_payload_has_another_name(load, tmp_path):
    once = twin.load(exported(load(arm()).with_payload(BODY), tmp_path, "once.urdf"))
    twice = twin.load(exported(once.with_payload(BODY), tmp_path, "twice.urdf"))
    assert twice.tree.inertias[1, 0] == pytest.approx(once.tree.inertias[1, 0] + BODY.mass, rel=1e-15)


def mesh(filename):
    return f'<visual><geometry><mesh filename="{filename}" scale="0.001 0.002 0.001"/></geometry></visual>'


def test_meshes_are_copied_under_their_paths(load, tmp_path):
    for place in ("pack/a.stl", "meshes/b.stl", "far/c.stl"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        trimesh.creation.box((10, 20, 40)).export(tmp_path / place)
    (tmp_path / "target").mkdir()
    far = tmp_path / "far" / "c.stl"
    names = ("package://pack/a.stl", "meshes/b.stl", "meshes/b.stl", far, f"file://{far}")
    robot = load(arm(shape="".join(map(mesh, names))))
    path, *copies = write_urdf(robot, tmp_path / "target" / "arm.urdf")
    there = {copy.relative_to(path.parent).as_posix() for copy in copies}
    assert there == {"pack/a.stl", "meshes/b.stl", f"meshes{far.as_posix()}"}
    shutil.move(path.parent, tmp_path / "moved")
    for place in ("pack", "meshes", "far"):  # the copy does not need the original
        shutil.rmtree(tmp_path / place)
    shapes = link_shapes(twin.load(tmp_path / "moved" / "arm.urdf"))
    assert [shape.mesh.extents.round(9).tolist() for shape in shapes] == [[0.01, 0.04, 0.04]] * 5


def test_what_a_urdf_cannot_express_is_named_and_meshes_beside_it_are_shared(irb1400, load, tmp_path):
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "a.stl")
    before = (tmp_path / "a.stl").stat()
    robot = load(arm(shape=mesh("a.stl")))
    assert write_urdf(robot, tmp_path / "other.urdf") == (tmp_path / "other.urdf",)
    assert (tmp_path / "a.stl").stat().st_ino == before.st_ino
    with pytest.warns(ExportWarning, match=r"^a URDF leaves out: mesh gone.stl, which was not found$"):
        exported(load(arm(shape=mesh("gone.stl"))), tmp_path)
    assert twin.load(tmp_path / "exported.urdf").n == 2
    with pytest.warns(ExportWarning, match=r"leaves out: closed loops; drives; mounting$"):
        write_urdf(irb1400.mounted("wall").with_drives("rigid"), tmp_path / "a.urdf")


def test_what_cannot_be_written(irb140, load, tmp_path):
    elsewhere = replace(irb140.tree, T_joint_flange=frozen(irb140.tree.T_joint_flange + 0.1 * np.eye(4, k=3)))
    off, robot = replace(irb140, tree=elsewhere).with_payload(BODY), load(arm())
    refused(
        (lambda: write_urdf(robot, robot.urdf), "is a file of the robot itself: expected another name"),
        (lambda: write_urdf(irb140, irb140.file), "is a file of the robot itself: expected another name"),
        (lambda: urdf_document(twin.load("youbot3")), "'link_1' of robot 'youbot3' has 0 kg and the moments"),
        (lambda: urdf_document(off), "no link of the file of robot 'irb140' is at its flange"),
        error=RobotError,
    )  # fmt: skip


def test_a_moment_beyond_the_triangle_by_printed_digits_is_corrected(load, tmp_path):
    rod = inertial(tensor=(0.1, 0.2, 0.3 + 1e-7, 0, 0, 0))
    robot = load(arm(first=rod))
    with pytest.warns(ExportWarning, match="moments of inertia of one, which no body has: the nearest"):
        file = exported(robot, tmp_path)
    inertia = ET.parse(file).find("link[@name='one']/inertial/inertia").attrib
    assert float(inertia["izz"]) <= float(inertia["ixx"]) + float(inertia["iyy"])
    again = twin.load(tmp_path / "exported.urdf").tree.inertias
    np.testing.assert_allclose(again, robot.tree.inertias, rtol=0, atol=1.1e-7)


DT = 1e-3
POSE = np.array([0.2, -0.1, 0.15, 0.4, 0.7, -0.5])
WARNED = pytest.mark.filterwarnings("ignore:MJCF leaves out")


def exported_mjcf(robot, folder, name="exported.xml"):
    """Write a robot as MJCF, and return MuJoCo's model of it in the pendant's coordinates."""
    return Reduced(robot, MuJoCoFile(write_mjcf(robot, folder / name)[0]))


def moving(robot, rng):
    """Return a state in which no joint rests, and accelerations."""
    speeds = rng.uniform(0.2, 1, robot.n) * rng.choice([-1, 1], robot.n)
    return POSE[: robot.n] + rng.uniform(-0.2, 0.2, robot.n), speeds, 3 * rng.normal(size=robot.n)


def assert_agrees(robot, peer, rng, samples=2):
    """Assert equal inverse and forward dynamics; those of MuJoCo with rigid equalities."""
    for _ in range(samples):
        q, qd, qdd = moving(robot, rng)
        tau = twin.inverse_dynamics(robot, q, qd, qdd)
        found = peer.inverse_dynamics(q, qd, qdd)
        np.testing.assert_allclose(found, tau, rtol=0, atol=1e-10 * np.max(np.abs(tau)))
        expected = robot.embedding @ twin.forward_dynamics(robot, q, qd, tau)
        found = (peer.rigid_dynamics if robot.passive else peer.loop_dynamics)(q, qd, tau)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.max(np.abs(expected)))


def without_static(robot):
    """Return the robot with rigid drives, whose friction at rest is Coulomb friction."""
    return robot.with_drives("rigid", replace(robot.drives, static=robot.drives.coulomb))


@WARNED
@pytest.mark.parametrize(
    ("name", "mode"),
    [("irb140", "ideal"), ("irb1400", "ideal"), ("irb1400", "rigid"), ("manutec_r3", "rigid")],
)
def test_torques_and_accelerations_of_the_robots(name, mode, tmp_path, rng):
    robot = twin.load(name).with_payload(BODY).mounted("wall")
    robot = robot if mode == "ideal" else without_static(robot)
    peer = exported_mjcf(robot, tmp_path)
    assert [peer.peer.model.joint(i).name for i in range(robot.tree.n)] == list(robot.tree.names)
    assert_agrees(robot, peer, rng)


@WARNED
@pytest.mark.parametrize(
    "part", ["rotors", "viscous", "coupled motors", "friction at joints", "spring", "cylinder"]
)
def test_each_part_alone(part, tmp_path, rng):
    robot = arm_with(part, tmp_path)
    assert_agrees(robot, exported_mjcf(robot, tmp_path), rng)


def test_parts_that_are_left_out_are_named(irb140, tmp_path):
    further = {"coulomb_per_load": 0.1, "viscous_root": 1.0, "viscous_difference": 0.1, "offset": 1.0}
    robot = irb140.with_drives("rigid", replace(irb140.drives, **further))
    told = "static friction above Coulomb friction; friction coulomb_per_load; friction viscous_root; "
    told += "friction viscous_difference; friction offset; the decrease of motor torque with speed; torque "
    told += "limits of motors that turn several joints, which limit each joint (joint_5, joint_6)"
    with pytest.warns(ExportWarning, match=f"^MJCF leaves out: {re.escape(told)}$"):
        (path,) = write_mjcf(robot, tmp_path / "arm.xml")
    for one in told.split("; "):
        assert f"Left out: {one}." in path.read_text(encoding="utf-8").partition("-->")[0]


def run(robot, peer, size):
    """Run MuJoCo and the twin from rest; return the largest differences of positions and speeds."""
    model, data, driven = peer.peer.model, peer.peer.data, list(robot.driven)
    plant, worst = twin.AnalyticPlant(robot, DT), np.zeros(2)
    plant.reset(POSE)
    mujoco.mj_resetData(model, data)
    data.qpos[:] = robot.tree_positions(POSE)
    for k in range(200):
        # A torque that carries the arm and swings all its joints.
        tau = twin.gravity_torque(robot.arm, plant.state()[0]) + size * np.sin(0.02 * k + np.arange(6))
        data.ctrl[:] = tau
        mujoco.mj_step(model, data)
        plant.step(tau)
        found = np.array([data.qpos[driven], data.qvel[driven]])
        worst = np.maximum(worst, np.max(np.abs(found - plant.state()), axis=1))
    assert np.max(np.abs(plant.state()[1])) > 0.1
    return worst


@WARNED
@pytest.mark.parametrize("mode", ["ideal", "viscous", "coulomb", "loop"])
def test_a_run_of_mujoco_is_that_of_the_twin(mode, irb140, irb1400, tmp_path):
    """Softness of MuJoCo's constraints limits the agreement where a joint sticks, and that of a loop."""
    robot = (irb1400 if mode == "loop" else irb140).with_payload(BODY)
    if mode == "viscous":
        smooth = replace(robot.drives.without_friction(), viscous=robot.drives.viscous)
        robot = robot.with_drives("rigid", smooth)
    elif mode == "coulomb":
        robot = without_static(robot)
    size = (1.0 if robot.active_drives else 0.02) * np.array([60.0, 80.0, 60.0, 20.0, 20.0, 12.0])
    q_error, qd_error = run(robot, exported_mjcf(robot, tmp_path), size)
    allowed = {"ideal": 1e-12, "viscous": 1e-12, "coulomb": 1e-4, "loop": 1e-5}[mode]
    assert q_error <= allowed
    assert qd_error <= 300 * allowed


@WARNED
def test_motors_have_the_limits_of_the_twin(irb1400, tmp_path):
    robot = irb1400.with_drives("rigid")
    peer, driven = exported_mjcf(robot, tmp_path).peer, list(robot.driven)
    for sign in (1.0, -1.0):
        peer.data.ctrl[:] = sign * 1e6
        mujoco.mj_forward(peer.model, peer.data)
        np.testing.assert_array_equal(peer.data.actuator_force, sign * robot.drive_torque_max)
        np.testing.assert_array_equal(peer.data.qfrc_actuator[driven], sign * robot.drive_torque_max)
    for ends, limits in zip(peer.model.jnt_range[driven].T, (robot.q_min, robot.q_max), strict=True):
        np.testing.assert_array_equal(ends, limits)
    passive = peer.model.jnt_range[list(robot.passive)]
    np.testing.assert_array_equal(passive, np.transpose([robot.passive_min, robot.passive_max]))


def test_a_range_may_be_a_point_or_have_one_end(load, tmp_path):
    robot = load(arm())
    robot = replace(robot, q_min=frozen([0.5, -np.inf]), q_max=frozen([0.5, 1.0]))
    model = exported_mjcf(robot, tmp_path).peer.model
    assert model.jnt_limited.tolist() == [1, 1]
    np.testing.assert_allclose(model.jnt_range, [[0.5, 0.5], [-1e9, 1.0]], rtol=0, atol=2e-9)


@WARNED
def test_the_flange_and_fixed_frames_are_sites(load, tmp_path, rng):
    robot = load(random_urdf(np.random.default_rng(3), 5))
    peer = exported_mjcf(robot, tmp_path)
    q = rng.normal(size=5)
    peer.gravity_torque(q)
    site = peer.peer.data.site("tool0")
    T = twin.forward_kinematics(robot, q)
    np.testing.assert_allclose(site.xpos, T[:3, 3], rtol=0, atol=1e-12)
    np.testing.assert_allclose(site.xmat.reshape(3, 3), T[:3, :3], rtol=0, atol=1e-12)
    sites = {peer.peer.model.site(i).name for i in range(peer.peer.model.nsite)}
    extras = set(re.findall(r'link name="(extra\d)"', robot.urdf.read_text()))
    assert sites == extras | {"tool0"}
    assert extras


def embedded(robot, row, offset=0.2):
    """Return a robot of three joints whose last one follows the others."""
    arrays = {name: getattr(robot, name)[:2] for name in ("q_min", "q_max", "qd_max", "tau_max")}
    arrays |= {"embedding": [[1.0, 0.0], [0.0, 1.0], row], "embedding_offset": [0.0, 0.0, offset]}
    arrays |= {"passive_min": robot.q_min[2:], "passive_max": robot.q_max[2:], "dh_coupling": np.eye(2)}
    frozen_arrays = {name: frozen(values) for name, values in arrays.items()}
    return uncompiled(replace(robot, driven=(0, 1), **frozen_arrays))


@pytest.mark.parametrize(
    ("row", "kind"), [([0.0, -1.5], "mjEQ_JOINT"), ([0.5, -1.5], "mjEQ_TENDON"), ([0.0, 0.0], "mjEQ_TENDON")]
)
def test_a_joint_that_follows_others_is_an_equality(load, tmp_path, rng, row, kind):
    robot = embedded(load(random_urdf(np.random.default_rng(5), 3)), row)
    peer = exported_mjcf(robot, tmp_path)
    assert list(peer.peer.model.eq_type) == [int(getattr(mujoco.mjtEq, kind))]
    assert_agrees(robot, peer, rng)
    np.testing.assert_allclose(peer.peer.data.efc_pos[: peer.peer.data.ne], 0.0, atol=1e-15)


def test_poses_are_keyframes_in_which_loops_are_closed(irb1400, tmp_path):
    peer = exported_mjcf(irb1400, tmp_path).peer
    for name, q in irb1400.poses.items():
        np.testing.assert_array_equal(peer.model.key(name).qpos, irb1400.tree_positions(q))
        mujoco.mj_resetDataKeyframe(peer.model, peer.data, peer.model.key(name).id)
        mujoco.mj_forward(peer.model, peer.data)
        np.testing.assert_allclose(peer.data.efc_pos[: peer.data.ne], 0.0, atol=1e-15)


ORIGIN = '<origin xyz="0.3 0.2 0.1" rpy="0.4 0.5 0.6"/>'


def visual(geometry):
    red = '<material name="red"><color rgba="1 0 0 0.5"/></material>'
    return f"<visual>{ORIGIN}<geometry>{geometry}</geometry>{red}</visual>"


def test_shapes_are_those_of_the_urdf(load, tmp_path):
    sizes = {
        "box": ('size="0.1 0.2 0.4"', [0.05, 0.1, 0.2]), "sphere": ('radius="0.1"', [0.1, 0, 0]),
        "cylinder": ('radius="0.1" length="0.3"', [0.1, 0.15, 0]),
        "capsule": ('radius="0.1" length="0.3"', [0.1, 0.15, 0]),
    }  # fmt: skip
    trimesh.creation.icosphere(subdivisions=1).export(tmp_path / "ball.stl", file_type="stl_ascii")
    shapes = [visual(f"<{tag} {size}/>") for tag, (size, _) in sizes.items()]
    shapes.append(visual('<mesh filename="ball.stl" scale="0.1 -0.2 0.3"/>'))
    robot = load(arm(shape="".join(shapes)))
    path, stl = write_mjcf(robot, tmp_path / "exported.xml")
    assert stl.relative_to(tmp_path).as_posix() == "exported_meshes/mesh_1.stl"
    model = MuJoCoFile(path).model
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    T = robot.tree.T_parent_joint[0]
    R = T[:3, :3] @ Rotation.from_euler("xyz", [0.4, 0.5, 0.6]).as_matrix()
    for i, (tag, (_, size)) in enumerate(sizes.items()):
        assert model.geom_type[i] == int(getattr(mujoco.mjtGeom, f"mjGEOM_{tag.upper()}"))
        np.testing.assert_array_equal(model.geom_size[i], size)
        np.testing.assert_allclose(data.geom_xpos[i], (T @ [0.3, 0.2, 0.1, 1])[:3], atol=1e-15)
        np.testing.assert_allclose(data.geom_xmat[i].reshape(3, 3), R, atol=1e-15)
    vertices = model.mesh_vert @ data.geom_xmat[4].reshape(3, 3).T + data.geom_xpos[4]
    expected = link_shapes(robot)[4].mesh.vertices @ T[:3, :3].T + T[:3, 3]
    gaps = np.linalg.norm(vertices[:, None] - expected, axis=2)
    assert max(gaps.min(axis=0).max(), gaps.min(axis=1).max()) < 1e-6  # single precision
    np.testing.assert_allclose(model.geom_rgba, [[1, 0, 0, 0.5]] * 5)
    assert model.geom_contype.tolist() == model.geom_conaffinity.tolist() == [0] * 5
    assert model.geom_group.tolist() == [2] * 5


def test_shapes_that_mujoco_cannot_draw_are_left_out(load, tmp_path):
    (tmp_path / "flat.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    shapes = ('<mesh filename="gone.stl"/>', '<mesh filename="flat.obj"/>', '<box size="0 0 0"/>', "<cone/>")
    robot = load(arm(shape="".join(map(visual, shapes))))
    told = r"mesh .*gone.stl, which was not found; shape 2 of link one \(it has no .*; shape 4"
    with pytest.warns(ExportWarning, match=told):
        write_mjcf(robot, tmp_path / "arm.xml")
    assert MuJoCoFile(tmp_path / "arm.xml").model.ngeom == 0


def test_a_massless_link_and_a_base_named_world_are_accepted(load, tmp_path, rng):
    frame = inertial(0.0, com="0 0 0", tensor=np.zeros(6))
    text = arm(first=frame).replace('"base"', '"world"').replace('name="arm"', 'name="a--b---c"')
    robot = load(text)
    assert_agrees(robot, exported_mjcf(robot, tmp_path), rng)


def test_what_mjcf_cannot_have(irb140, irb1400, tmp_path):
    cylinder = Cylinder.between(1, *np.eye(3), np.eye(3), 0.45, 900.0, 0.0)
    pulling = replace(cylinder, stiffness=1.0, force=-900.0)
    coupling = np.eye(6)
    coupling[2, 1] = 0.1

    def with_torque(one):
        return replace(irb140, tree=replace(irb140.tree, torques=(one,)))

    branched = irb1400.with_drives("rigid", replace(irb1400.drives, coupling=coupling))
    for robot, told in (
        (irb140.with_drives("elastic"), "expects ideal or rigid"),
        (twin.load("rx90"), "has no dynamics"),
        (twin.load("youbot3"), "no such body exists"),
        (open_chain(irb1400), "moves no mass"),
        (arm_with("column", tmp_path), "MJCF cannot express cable"),
        (with_torque(Spring(1, 0.0, 5.0)), "cannot express Ks2, Ts2"),
        (with_torque(cylinder), "cannot express Fz2, Kz2"),
        (with_torque(pulling), "cannot express Fz2, Kz2"),
        (branched, "motor 3 of robot 'irb1400' turns joints of different branches"),
    ):
        with pytest.raises(RobotError, match=told):
            write_mjcf(robot, tmp_path / "a.xml")
    assert not (tmp_path / "a.xml").exists()


def test_two_springs_over_a_joint_add_up(irb140, tmp_path, rng):
    springs = (Spring(1, 30.0, 5.0), Spring(1, 10.0, -2.0))
    robot = uncompiled(replace(irb140, tree=replace(irb140.tree, torques=springs)))
    assert_agrees(robot, exported_mjcf(robot, tmp_path), rng, samples=1)
