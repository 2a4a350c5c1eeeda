"""Exported URDFs: the same tree when loaded again, and the same torques in other libraries."""

import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
import trimesh

import twin
from tests.support.peers import MuJoCo, Pinocchio, Reduced
from tests.support.random_trees import random_urdf
from tests.support.refusals import refused
from tests.support.sample_loads import BODY
from tests.support.small_robots import arm, inertial, joint
from twin.base.errors import ExportWarning, RobotError
from twin.physics.multibody.tree import frozen
from twin.physics.robot import write_urdf
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
