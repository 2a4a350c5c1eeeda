"""Link shapes have the poses and colours of the file, and files that cannot be drawn are rejected.

Mass properties of CAD meshes: against boxes, cylinders, and a second CAD source of the IRB 140.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import twin
from tests.support.shared_data import shared_folder
from tests.support.small_robots import arm, inertial
from twin.base.errors import RobotError, ShapeWarning
from twin.physics.engine.simulation import Simulation
from twin.physics.robot import link_shapes
from twin.physics.robot.link_shapes import (
    bodies_of_urdf,
    body_of_file,
    body_of_mesh,
    joined,
    write_weighed,
)
from twin.physics.robot.robot import Frame
from urdf.schema import tomllib

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


SIZE = np.array([0.375, 0.25, 0.125])  # exact in single precision
VOLUME = 0.01171875
MIDDLE = np.array([0.5, -2.0, 30.0])
CAD = shared_folder() and Path(shared_folder(), "abb_meshes", "irb140")


def box(size=SIZE, middle=MIDDLE, R=None):
    T = np.eye(4)
    T[:3, :3] = np.eye(3) if R is None else R
    T[:3, 3] = middle
    return trimesh.creation.box(size, transform=T)


def weighed(mesh):
    return body_of_mesh(np.array(mesh.vertices), np.array(mesh.faces), "part.stl")


def box_inertia(mass, size=SIZE):
    x, y, z = size**2
    return mass / 12 * np.diag([y + z, x + z, x + y])


def test_turned_box_far_from_the_origin_is_exact_to_rounding():
    R = twin.rotations.matrix_from_euler([0.3, -0.5, 1.2], "zyx")
    body = weighed(box(R=R))
    assert body.volume == pytest.approx(VOLUME, rel=1e-13)
    np.testing.assert_allclose(body.com, MIDDLE, rtol=1e-14)
    np.testing.assert_allclose(body.inertia, R @ box_inertia(VOLUME) @ R.T, rtol=0, atol=1e-13 * VOLUME)


def test_cylinder_lacks_what_its_facets_cut_off():
    for faces, error in ((64, 1.6e-3), (512, 2.5e-5)):
        body = weighed(trimesh.creation.cylinder(radius=0.1, height=0.4, sections=faces))
        angle = 2 * np.pi / faces
        polygon = faces / 2 * np.sin(angle) * 0.1**2
        assert body.volume == pytest.approx(0.4 * polygon, rel=1e-12)
        assert 1 - body.volume / (0.4 * np.pi * 0.1**2) == pytest.approx(error, rel=0.05)
        about_axis = polygon * 0.4 * 0.1**2 / 6 * (2 + np.cos(angle))  # of a regular polygon
        assert body.inertia[2, 2] == pytest.approx(about_axis, rel=1e-12)


def test_stl_files_are_read_in_their_unit(tmp_path):
    for kind, unit, scale in (("stl", "m", 1), ("stl_ascii", "mm", 1e3)):
        mesh = box(middle=np.zeros(3))
        mesh.apply_scale(scale)
        mesh.export(tmp_path / f"{unit}.stl", file_type=kind)
        body = body_of_file(tmp_path / f"{unit}.stl", unit)
        assert body.volume == pytest.approx(VOLUME, rel=1e-14)
        np.testing.assert_allclose(body.inertia, box_inertia(VOLUME), rtol=1e-14, atol=1e-18)


def test_cavity_is_subtracted_and_mesh_inside_out_is_turned():
    outer, inner = box(middle=np.zeros(3)), box(0.5 * SIZE, np.zeros(3))
    inner.invert()
    hollow = trimesh.util.concatenate([outer, inner])
    body = weighed(hollow)
    assert body.volume == pytest.approx(VOLUME * 7 / 8, rel=1e-13)
    np.testing.assert_allclose(body.inertia, box_inertia(VOLUME * (1 - 1 / 32)), rtol=1e-12, atol=1e-18)
    assert body.remarks == ()
    hollow.invert()
    assert weighed(hollow).remarks == ("part.stl was inside out: its triangles were turned",)
    assert weighed(hollow).volume == pytest.approx(body.volume, rel=1e-15)


def test_overlapping_shells_are_reported():
    def both(second, R=None):
        return weighed(trimesh.util.concatenate([box(R=R), second]))

    shifted = both(box(middle=np.add(MIDDLE, (0.15, 0.05, 0.0))))
    assert shifted.remarks == ("shells 1 and 2 of part.stl overlap: their common volume counts twice",)
    assert len(both(box(0.5 * SIZE)).remarks) == 1  # nested
    apart = both(box(middle=np.add(MIDDLE, (0.4, 0.0, 0.0))))
    assert apart.remarks == ()
    assert apart.volume == pytest.approx(2 * VOLUME, rel=1e-13)
    crossed = twin.rotations.matrix_from_euler([0.0, 0.0, 0.5], "zyx")  # only the boxes around them overlap
    assert both(box(middle=np.add(MIDDLE, (0.0, 0.24, 0.13)), R=crossed), crossed).remarks == ()


def test_mesh_that_bounds_no_solid_is_rejected():
    mesh = box()
    vertices, faces = np.array(mesh.vertices), np.array(mesh.faces)
    for changed, message in (
        (faces[1:], "part.stl is not closed: 3 of its 18 edges belong to an odd number"),
        (np.vstack([faces[:1, ::-1], faces[1:]]), "disagree on the outside, at 3 of its 18"),
        (np.vstack([faces, faces[:, ::-1]]), "part.stl encloses no volume"),
        (faces[:, [0, 0, 1]], "part.stl has no triangles with an area"),
    ):
        with pytest.raises(RobotError, match=message):
            body_of_mesh(vertices, changed, "part.stl")


def test_bodies_of_two_densities_are_joined():
    left, right = weighed(box())._replace(density=1000.0), weighed(box(middle=np.add(MIDDLE, (0.3, 0, 0))))
    body = joined([left, right._replace(density=3000.0)])
    assert body.mass == pytest.approx(4000 * VOLUME, rel=1e-13)
    np.testing.assert_allclose(body.com, np.add(MIDDLE, (0.225, 0, 0)), rtol=1e-14)
    expected = box_inertia(4000 * VOLUME) + np.diag([0, 1, 1]) * VOLUME * (1000 * 0.225**2 + 3000 * 0.075**2)
    np.testing.assert_allclose(body.density * body.inertia, expected, rtol=1e-12, atol=1e-12)


ARM = """<robot name="arm">
  <link name="base"/>  <!-- stays -->
  <link name="upper"><visual><origin xyz="0.1 0 0" rpy="0.3 0.2 0.1"/>
    <geometry><mesh filename="upper.stl" scale="1 1 1"/></geometry></visual></link>
  <link name="lower"><visual><geometry><sphere radius="0.05"/></geometry></visual></link>
  <joint name="one" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 0.3"/><limit lower="-1" upper="1" effort="9" velocity="9"/></joint>
  <joint name="two" type="revolute"><parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/>
    <origin xyz="0.4 0 0"/><limit lower="-1" upper="1" effort="9" velocity="9"/></joint>
</robot>"""


def test_urdf_without_masses_has_kinematics_and_can_be_weighed(load, tmp_path):
    """Two links, whose shapes are a turned box and a ball."""
    box(middle=np.zeros(3)).export(tmp_path / "upper.stl")
    bare = load(ARM)
    assert not bare.has_inertia
    np.testing.assert_allclose(twin.forward_kinematics(bare, [0.0, 0.0])[:3, 3], [0.4, 0.0, 0.3])
    with pytest.raises(RobotError, match=r"no dynamics: its URDF has no <inertial>; irb-twin mass computes"):
        twin.inverse_dynamics(bare, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    bodies = {name: body._replace(density=1000.0) for name, body in bodies_of_urdf(bare.urdf).items()}
    write_weighed(bare.urdf, bodies, tmp_path / "weighed.urdf")
    robot = twin.load(tmp_path / "weighed.urdf")
    masses = robot.tree.inertias[:, 0]
    assert masses[0] == pytest.approx(1000 * VOLUME, rel=1e-13)
    assert masses[1] == pytest.approx(1000 * 4 / 3 * np.pi * 0.05**3, rel=0.02)
    R = twin.rotations.matrix_from_euler([0.1, 0.2, 0.3], "zyx")
    inertia = R @ box_inertia(1000 * VOLUME) @ R.T + 1000 * VOLUME * 0.1**2 * np.diag([0, 1, 1])
    xx, yy, zz, xy, xz, yz = robot.tree.inertias[0, 4:]
    np.testing.assert_allclose([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], inertia, rtol=0, atol=1e-14)
    assert "<!-- stays -->" in (tmp_path / "weighed.urdf").read_text(encoding="utf-8")
    long = load(ARM.replace("1 1 1", "1000 1000 1000")).urdf
    told = r"is 402.2 m long, 575 times the 0.7 m .*mm \(scale 0.001\) or inch"
    with pytest.raises(RobotError, match=told):
        bodies_of_urdf(long)


@pytest.mark.shared
def test_public_meshes_of_the_irb140_agree_with_a_second_cad_source_and_with_the_thesis():
    """The thesis measured another export of the same CAD."""
    files = {"base": "base_link", **{str(k): f"link_{k}" for k in range(1, 7) if k != 4}}
    bodies = {link: body_of_file(CAD / f"{file}.stl", "cm") for link, file in files.items()}
    facts = tomllib.loads((CAD.parents[2] / "facts" / "irb140_cad.toml").read_text(encoding="utf-8"))["link"]
    for link, limit in (("base", 3e-8), ("2", 2e-7)):
        body, cad = bodies[link], facts[link]
        assert 1000 * body.volume == pytest.approx(cad["mass_1000"], rel=limit)
        np.testing.assert_allclose(body.com, cad["com"], rtol=0, atol=1e-8)
        xx, yy, zz, xy, xz, yz = cad["inertia"]
        inertia = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        np.testing.assert_allclose(1000 * body.inertia, inertia, rtol=0, atol=limit * np.max(cad["inertia"]))
    published = sum(facts[link]["mass_published"] for link in bodies)
    total = sum(body.volume for body in bodies.values())
    for link, body in bodies.items():
        assert published * body.volume / total == pytest.approx(facts[link]["mass_published"], rel=0.015)
