"""Link shapes have the poses and colours of the file, and files that cannot be drawn are rejected."""

import os
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.support.small_robots import arm, inertial
from twin.base.errors import RobotError, ShapeWarning
from twin.physics.engine.simulation import Simulation
from twin.physics.robot import link_shapes
from twin.physics.robot.robot import Frame

ORIGIN = '<origin xyz="0.3 0.2 0.1" rpy="0.4 0.5 0.6"/>'
BOX = f'<visual>{ORIGIN}<geometry><box size="0.1 0.2 0.4"/></geometry></visual>'
PLY = """ply
format ascii 1.0
element vertex 3
property float x
property float y
property float z
element face 1
property list uchar int vertex_indices
end_header
0 0 0
1 0 0
0 1 0
3 0 1 3
"""
FLAT = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"


def visual(geometry, material=""):
    return f"<visual><geometry>{geometry}</geometry>{material}</visual>"


def test_a_shape_is_where_the_file_puts_it(load):
    (box,) = link_shapes.link_shapes(load(arm(shape=BOX)))
    assert box.link == 0
    R = Rotation.from_euler("xyz", [0.4, 0.5, 0.6]).as_matrix()
    corners = np.array(np.meshgrid([-0.05, 0.05], [-0.1, 0.1], [-0.2, 0.2])).reshape(3, 8)
    expected = corners.T @ R.T + np.array([0.3, 0.2, 0.1])
    found = box.mesh.vertices
    assert np.max(np.min(np.linalg.norm(found[:, None] - expected, axis=2), axis=1)) < 1e-15


def test_a_shape_of_a_fixed_link_moves_with_its_parent(load):
    ball = visual('<sphere radius="0.1"/>')
    robot = load(arm().replace('<link name="tool0">', f'<link name="tool0">{ball}'))
    (ball,) = link_shapes.link_shapes(robot)
    assert ball.link == 1
    np.testing.assert_allclose(ball.mesh.centroid, robot.tree.T_joint_flange[:3, 3], atol=1e-12)


def test_the_engine_draws_a_shape_where_the_file_places_it(load):
    """The inertial frame of the link does not affect the position of the drawn shape."""
    tilted = inertial(com="0.1 -0.2 0.3", rpy="0.4 1.1 -2", tensor=(0.1, 0.12, 0.09, 0, 0, 0))
    ball = f'<visual>{ORIGIN}<geometry><sphere radius="0.03"/></geometry></visual>'
    robot = load(arm(first=tilted, shape=ball))
    tree = robot.tree
    c, s = np.cos(0.7), np.sin(0.7)
    turned = tree.T_parent_joint[0] @ [[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    where = (turned @ [0.3, 0.2, 0.1, 1])[:3]
    camera = {"target": (0.1, 0.1, 0.4), "distance": 2.0, "yaw_deg": 35.0, "pitch_deg": -25.0}
    with Simulation(robot) as simulation:
        simulation.reset([0.7, 0.2])
        mask = (simulation.picture(400, 300, **camera) < 255).any(axis=2)
        expected = simulation.pixels(where, 400, 300, **camera)
    row, column = np.argwhere(mask).mean(axis=0)
    assert np.hypot(*(expected - (column, row))) < 0.3


def test_shapes_stay_with_their_links_when_the_tree_orders_them_differently(load):
    robot = load(arm(shape=BOX))
    frames = {link: Frame({0: 1, 1: 0}.get(frame.joint, -1), frame.T) for link, frame in robot.frames.items()}
    assert [shape.link for shape in link_shapes.link_shapes(replace(robot, frames=frames))] == [1]


def test_shapes_have_the_colours_of_the_file(load):
    ball, grey = '<sphere radius="0.1"/>', '<material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>'
    red = '<material name="red"><color rgba="1 0 0 0.5"/></material>'
    materials = ("", '<material name="grey"/>', red, '<material name="unknown"/>')
    shape = "".join(visual(ball, material) for material in materials)
    text = arm(shape=shape).replace('<link name="base">', f'{grey}<link name="base">')
    colors = [shape.color for shape in link_shapes.link_shapes(load(text))]
    assert colors == [(1, 1, 1, 1), (0.5, 0.5, 0.5, 1), (1, 0, 0, 0.5), (1, 1, 1, 1)]


def test_more_colours_than_pybullet_accepts_become_one(load):
    for colours, drawn in ((20, 20), (130, 1)):
        materials = (
            f'<material name="m{k}"><color rgba="0 0 {k / 200} 1"/></material>' for k in range(colours)
        )
        shape = "".join(visual("<box size='1 1 1'/>", material) for material in materials)
        with Simulation(load(arm(shape=shape))) as simulation:
            client, body = simulation._drawing()
            assert len(client.getVisualShapeData(body)) == drawn


def test_a_robot_without_a_file_is_drawn_as_sticks():
    shapes = link_shapes.link_shapes(twin.load("two_link"))
    assert [shape.link for shape in shapes] == [0, 1]
    low, high = shapes[0].mesh.bounds
    np.testing.assert_allclose(high[0] - low[0], 1.0, atol=1e-12)


def test_meshes_are_found_by_relative_path_and_by_package_path(load, tmp_path, monkeypatch):
    """ROS_PACKAGE_PATH has packages, or folders of packages."""
    for folder in (tmp_path / "meshes", tmp_path / "workspace" / "parts" / "meshes"):
        folder.mkdir(parents=True)
        (folder / f"{folder.parent.name}.obj").write_text(FLAT)
    (tmp_path / "meshes" / f"{tmp_path.name}.obj").rename(tmp_path / "meshes" / "flat.obj")
    for name, place in (
        ("meshes/flat.obj", ""),
        ("package://arm_description/meshes/flat.obj", ""),
        ("package://parts/meshes/parts.obj", "workspace"),
        ("package://parts/meshes/parts.obj", "workspace/parts"),
    ):
        monkeypatch.setenv("ROS_PACKAGE_PATH", f"/nowhere{os.pathsep}{tmp_path / place}")
        (mesh,) = link_shapes.link_shapes(load(arm(shape=visual(f'<mesh filename="{name}" scale="2 1 1"/>'))))
        np.testing.assert_array_equal(mesh.mesh.bounds, [[0, 0, 0], [2, 1, 0]])


def test_a_mesh_that_cannot_be_drawn_is_rejected_in_one_sentence(load, tmp_path, monkeypatch):
    """PyBullet ends the process for some of these files and silently omits others."""
    for name, content, told in (
        ("far.obj", FLAT.replace("f 1 2 3", "f 1 2 99999999"), "far.obj "),
        ("next.ply", PLY, "next.ply has no triangles, or triangles without vertices"),
        ("zero.obj", "", "zero.obj "),
        ("nan.obj", FLAT.replace("v 1", "v nan"), "nan.obj has no triangles, or triangles without vertices"),
        ("cut.stl", "solid cut\nfacet normal", "cut.stl "),
        ("broken.dae", "<COLLADA><library_geometries><geometry><mesh>", "broken.dae cannot be read"),
        ("other.txt", "a mesh", "other.txt cannot be read"),
        ("large.obj", FLAT, "large.obj is larger than"),
    ):
        (tmp_path / name).write_text(content)
        if name == "large.obj":
            monkeypatch.setattr(link_shapes, "LARGEST_MESH", 10)
        assert_rejected(
            load, f'<mesh filename="{name}"/>', f"link 'one' has a <visual> that cannot be .*{told}"
        )


def assert_rejected(load, geometry, told):
    with (
        pytest.raises(RobotError, match=told) as raised,
        Simulation(load(arm(shape=visual(geometry)))) as drawn,
    ):
        drawn.picture(32, 24)
    assert "\n" not in str(raised.value)


def test_missing_meshes_warn_and_are_not_drawn(load):
    """The remaining shapes are drawn, or sticks if none remain. Public URDFs rarely include their meshes."""
    missing = visual('<mesh filename="package://arm/none.obj"/>')
    told = r"mesh file package:/arm/none\.obj not found beside the URDF, in a folder above it or in --pack"
    with pytest.warns(ShapeWarning, match=told):
        (box,) = link_shapes.link_shapes(load(arm(shape=missing + BOX)))
    assert len(box.mesh.faces) == 12
    with pytest.warns(ShapeWarning, match=r"none\.obj and 1 more"):
        sticks = link_shapes.link_shapes(load(arm(shape=missing + missing)))
    assert sticks
    with pytest.warns(ShapeWarning), Simulation(load(arm(shape=missing))) as simulation:
        simulation.picture(32, 24)


def test_invalid_sizes_are_rejected(load):
    for geometry, told in (
        ('<box size="1 2"/>', "<box size='1 2'>, expected 3 finite numbers"),
        ('<box size="1 2 x"/>', "<box size='1 2 x'>, expected 3 finite numbers"),
        ('<sphere radius="-1"/>', "<sphere radius='-1'>, expected at least 0"),
        ('<cylinder radius="1"/>', "<cylinder length=None>, expected a finite number"),
        ('<sphere radius="1_0"/>', "<sphere radius='1_0'>, expected a finite number"),
    ):
        assert_rejected(load, geometry, f"cannot be drawn: {told}")


def test_an_unknown_geometry_is_ignored(load):
    assert link_shapes.link_shapes(load(arm(shape=visual('<plane normal="0 0 1"/>')))) == []


def test_the_files_of_a_simulation_are_removed(irb140, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Simulation(irb140) as simulation:
        client, body = simulation._drawing()
        assert list(tmp_path.iterdir()) == []
        assert client.getVisualShapeData(body)
