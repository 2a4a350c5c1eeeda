"""Mass properties of solids against an independent integral over them."""

from pathlib import Path

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import scenarios.templates
import twin
from tests.support.refusals import refused
from twin.physics.robot.link_shapes import body_of_mesh
from urdf import build, decimal_math
from urdf.schema import FactsError
from urdf.solids import bulk, solid_of_mesh

NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)  # exact for polynomials up to degree 7


def grid(low, high):
    """Points (N, 3) and weights (N,) of Gauss and Legendre's rule over a box."""
    low, high = np.array(low, float), np.array(high, float)
    points = np.stack(np.meshgrid(NODES, NODES, NODES, indexing="ij"), axis=-1).reshape(-1, 3)
    weights = np.einsum("i,j,k->ijk", WEIGHTS, WEIGHTS, WEIGHTS).ravel()
    return (low + high) / 2 + points * (high - low) / 2, weights * np.prod((high - low) / 2)


def check(solid, points, weights):
    """The bulk of a solid equals the sums over points (N, 3) with the volumes `weights` (N,)."""
    with decimal_math.precisely():
        found = bulk({"solid": solid})
    volume = weights.sum()
    com = weights @ points / volume
    arms = points - com
    squares = np.einsum("n,ni,nj->ij", weights, arms, arms) / volume
    inertia = np.trace(squares) * np.eye(3) - squares
    assert float(found.volume) == pytest.approx(volume, rel=1e-14)
    np.testing.assert_allclose(np.array(found.com, float), com, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.array(found.inertia, float), inertia, rtol=0, atol=1e-14 * inertia.max())


def test_box():
    size, at = np.array([0.230, 0.030, 0.060]), np.array([0.065, -0.010, 0.475])
    check({"box": size.tolist(), "at": at.tolist()}, *grid(at - size / 2, at + size / 2))


def test_a_hollow_box_is_its_six_walls():
    """Summed over disjoint plates: two full faces, two between them, two closing what is left."""
    size, at, wall = np.array([0.341, 0.125, 0.112]), np.array([0.634, -0.001, 1.187]), 0.0086
    low, high, left = at - size / 2, at + size / 2, []
    for axis in range(3):
        for side in (0, 1):
            corners = np.array([low, high])
            corners[1 - side, axis] = corners[side, axis] + (wall if side == 0 else -wall)
            left.append(grid(*corners))
        low[axis] += wall
        high[axis] -= wall
    points, weights = (np.concatenate(parts) for parts in zip(*left, strict=True))
    check({"hollow_box": size.tolist(), "wall": wall, "at": at.tolist()}, points, weights)


@pytest.mark.parametrize("end", [(-0.02, 0, 1.075), (0.25, -0.4, 0.7)])
def test_cylinder_in_any_direction(end):
    """Radius, angle and height; over the angle, equal steps integrate exactly."""
    start, radius = np.array([-0.020, 0, 0.475]), 0.020
    axis = np.array(end) - start
    R = Rotation.align_vectors([axis / np.linalg.norm(axis)], [[0, 0, 1]])[0].as_matrix()
    ring, weights = grid([0, -0.5, 0], [radius, 0.5, np.linalg.norm(axis)])
    r, _, z = ring.T
    angles = 2 * np.pi * np.arange(8) / 8
    points = [start + np.stack([r * np.cos(a), r * np.sin(a), z], axis=-1) @ R.T for a in angles]
    volumes = np.tile(weights * r * 2 * np.pi / 8, 8)
    check({"cylinder": radius, "from": start.tolist(), "to": list(end)}, np.concatenate(points), volumes)


def test_the_cad_s_mass_follows_from_the_volume():
    values = {"volume_mm3": 2_000_000, "com": [0.1, 0, 0.2], "inertia": [4.0, 5.0, 6.0, 0.1, 0.2, 0.3]}
    for extra, mass in ({}, 2.0), ({"mass_1000": 2.5}, 2.5):
        with decimal_math.precisely():
            found = bulk(values | extra)
        assert float(found.volume) == 0.002
        expected = np.array([[4.0, 0.1, 0.2], [0.1, 5.0, 0.3], [0.2, 0.3, 6.0]]) / mass
        np.testing.assert_allclose(np.array(found.inertia, float), expected, rtol=1e-15)


# Links of a robot.toml whose solid is what an STL mesh bounds.


TEMPLATE = (Path(scenarios.templates.__file__).parent / "my_robot.toml").read_text(encoding="utf-8")
BOX = "solid = { hollow_box = [0.240, 0.100, 0.100], wall = 0.006, at = [0.350, 0, 0.850] }"
CORNERS = (b"vertex 0 0 0", b"vertex 1 0 0", b"vertex 0 1 0")
SIZE, AT = np.array([0.25, 0.125, 0.0625]), np.array([0.35, 0.0, 0.85])


def mesh(quat=(1, 0, 0, 0)):
    return trimesh.creation.box(SIZE, transform=twin.pose_matrix([*AT, *quat]))


@pytest.fixture
def write(tmp_path):
    def written(solid, kind="stl", other=lambda text: text):
        scaled = mesh()
        scaled.apply_scale(1000.0)
        scaled.export(tmp_path / "link 4.stl", file_type=kind)
        (tmp_path / "robot.toml").write_text(other(TEMPLATE.replace(BOX, solid)), encoding="utf-8")
        assert build.main([str(tmp_path / "robot.toml")]) == 0
        return twin.load(tmp_path / "robot.toml")

    return written


def mass_properties(robot):
    """Return mass and centre of link 4 in the base frame at the zero pose."""
    T = twin.kinematics.link_poses(robot, np.zeros(6))[3]
    mass, *moment = robot.tree.inertias[3, :4]
    return mass, T[:3, :3] @ np.divide(moment, mass) + T[:3, 3]


def test_link_is_the_solid_in_its_mesh(write):
    """The robot's mass is shared by volume; the STL holds single precision."""
    boxes = write(f"solid = {{ box = {SIZE.tolist()}, at = {AT.tolist()} }}")
    for kind in ("stl", "stl_ascii"):
        robot = write('solid = { mesh = "link 4.stl", unit = "mm" }', kind)
        mass, com = mass_properties(robot)
        assert mass == pytest.approx(mass_properties(boxes)[0], rel=1e-6)
        np.testing.assert_allclose(com, AT, rtol=0, atol=1e-7)
        np.testing.assert_allclose(robot.tree.inertias[3], boxes.tree.inertias[3], rtol=0, atol=1e-6)
    text = robot.urdf.read_text(encoding="utf-8")
    assert '<mesh filename="link 4.stl" scale="0.001 0.001 0.001"/>' in text


def test_density_takes_the_place_of_the_mass(write):
    def each_has_a_mass(text):
        text = text.replace("mass = 60.0 ", "# mass = 60.0 ")
        for link in ("base", "1", "2", "3", "5", "6"):
            text = text.replace(f"[link.{link}]\n", f"[link.{link}]\nmass = 5.0\n")
        return text

    robot = write('solid = { mesh = "link 4.stl", unit = "mm", density = 2700 }', other=each_has_a_mass)
    assert mass_properties(robot)[0] == pytest.approx(2700 * np.prod(SIZE), rel=1e-6)


def test_integrals_agree_with_those_of_the_other_computation(tmp_path):
    ball = trimesh.creation.icosphere(subdivisions=1, radius=0.1)
    trimesh.util.concatenate([mesh((0.5, -0.1, 0.7, 0.5)), ball]).export(tmp_path / "part.stl")
    rounded = trimesh.load(tmp_path / "part.stl", process=False)
    body = body_of_mesh(np.array(rounded.vertices), np.array(rounded.faces), "part.stl")
    volume, com, inertia = solid_of_mesh(tmp_path / "part.stl", "m")
    assert volume == pytest.approx(body.volume, rel=1e-13)
    np.testing.assert_allclose(com, body.com, rtol=0, atol=1e-14)
    places = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    expected = [body.inertia[place] / body.volume for place in places]
    np.testing.assert_allclose(inertia, expected, rtol=0, atol=1e-14)
    inverted = rounded.copy()
    inverted.invert()
    inverted.export(tmp_path / "inverted.stl")
    np.testing.assert_allclose(solid_of_mesh(tmp_path / "inverted.stl", "m")[2], inertia, rtol=0, atol=1e-14)


def test_mesh_that_is_no_solid_is_rejected(tmp_path):
    def solid(name, content):
        (tmp_path / name).write_bytes(content)
        return lambda: solid_of_mesh(tmp_path / name, "m")

    short, flat = b"solid part\nvertex 1 2 3\nendsolid", b" ".join([*CORNERS, *CORNERS[::-1]])
    refused(
        (lambda: solid_of_mesh(tmp_path / "none.stl", "m"), "cannot read the mesh .*none.stl: No such file"),
        (solid("short.stl", short), "short.stl is no STL file with triangles"),
        (solid("open.stl", b" ".join(CORNERS)), "open.stl is not closed: [1-3] edges belong"),
        (solid("flat.stl", flat), "flat.stl encloses no volume"),
        error=FactsError,
    )


def test_wrong_table_is_rejected(tmp_path, capsys):
    for solid, message in (
        ('{ mesh = "link 4.stl", unit = "ft" }', "solid: unknown unit 'ft': known are m, cm, mm, inch"),
        ('{ mesh = "link 4.stl" }', "lacks the key 'unit'"),
        ('{ mesh = "link 4.stl", unit = "mm", density = 2700 }', "link.4 has a mass, and so has the robot"),
    ):
        (tmp_path / "robot.toml").write_text(TEMPLATE.replace(BOX, f"solid = {solid}"), encoding="utf-8")
        assert build.main([str(tmp_path / "robot.toml")]) != 0
        assert message in capsys.readouterr().err
