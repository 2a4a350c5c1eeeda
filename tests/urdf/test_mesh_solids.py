"""Links of a robot.toml whose solid is what an STL mesh bounds."""

from pathlib import Path

import numpy as np
import pytest
import trimesh

import scenarios.templates
import twin
from tests.support.refusals import refused
from twin.robot.loading.mesh_bodies import body_of_mesh
from urdf import build, stl
from urdf.schema import FactsError

TEMPLATE = (Path(scenarios.templates.__file__).parent / "my_robot.toml").read_text(encoding="utf-8")
BOX = "solid = { hollow_box = [0.240, 0.100, 0.100], wall = 0.006, at = [0.350, 0, 0.850] }"
CORNERS = (b"vertex 0 0 0", b"vertex 1 0 0", b"vertex 0 1 0")
SIZE, AT = np.array([0.25, 0.125, 0.0625]), np.array([0.35, 0.0, 0.85])


def mesh(quat=(1, 0, 0, 0)):
    return trimesh.creation.box(SIZE, transform=twin.pose_matrix([*AT, *quat]))


@pytest.fixture
def write(tmp_path):
    def written(solid, kind="stl", other=lambda text: text, part=None):
        scaled = (part or mesh()).copy()
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


@pytest.mark.parametrize("kind", ["stl", "stl_ascii"])
def test_link_is_the_solid_in_its_mesh(kind, write):
    """The robot's mass is shared by volume; the STL holds single precision."""
    robot = write('solid = { mesh = "link 4.stl", unit = "mm" }', kind)
    text = robot.urdf.read_text(encoding="utf-8")
    mass, com = mass_properties(robot)
    boxes = write(f"solid = {{ box = {SIZE.tolist()}, at = {AT.tolist()} }}")
    assert mass == pytest.approx(mass_properties(boxes)[0], rel=1e-6)
    np.testing.assert_allclose(com, AT, rtol=0, atol=1e-7)
    np.testing.assert_allclose(robot.tree.inertias[3], boxes.tree.inertias[3], rtol=0, atol=1e-6)
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
    part = trimesh.util.concatenate(
        [mesh((0.5, -0.1, 0.7, 0.5)), trimesh.creation.icosphere(subdivisions=2, radius=0.1)]
    )
    part.export(tmp_path / "part.stl")
    rounded = trimesh.load(tmp_path / "part.stl", process=False)
    body = body_of_mesh(np.array(rounded.vertices), np.array(rounded.faces), "part.stl")
    volume, com, inertia = stl.solid(tmp_path / "part.stl", "m")
    assert volume == pytest.approx(body.volume, rel=1e-13)
    np.testing.assert_allclose(com, body.com, rtol=0, atol=1e-14)
    places = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    expected = [body.inertia[place] / body.volume for place in places]
    np.testing.assert_allclose(inertia, expected, rtol=0, atol=1e-14)
    inverted = rounded.copy()
    inverted.invert()
    inverted.export(tmp_path / "inverted.stl")
    np.testing.assert_allclose(stl.solid(tmp_path / "inverted.stl", "m")[2], inertia, rtol=0, atol=1e-14)


def test_mesh_that_is_no_solid_is_rejected(tmp_path):
    def solid(name, content):
        (tmp_path / name).write_bytes(content)
        return lambda: stl.solid(tmp_path / name, "m")

    short, flat = b"solid part\nvertex 1 2 3\nendsolid", b" ".join([*CORNERS, *CORNERS[::-1]])
    refused(
        (lambda: stl.solid(tmp_path / "none.stl", "m"), "cannot read the mesh .*none.stl: No such file"),
        (solid("short.stl", short), "short.stl is no STL file with triangles"),
        (solid("open.stl", b" ".join(CORNERS)), "open.stl is not closed: [1-3] edges belong"),
        (solid("flat.stl", flat), "flat.stl encloses no volume"),
        error=FactsError,
    )


@pytest.mark.parametrize(
    ("solid", "message"),
    [
        ('{ mesh = "link 4.stl", unit = "ft" }', "solid: unknown unit 'ft': known are m, cm, mm, inch"),
        ('{ mesh = "link 4.stl" }', "lacks the key 'unit'"),
        ('{ mesh = "link 4.stl", unit = "mm", density = 2700 }', "link.4 has a mass, and so has the robot"),
    ],
)
def test_wrong_table_is_rejected(solid, message, tmp_path, capsys):
    (tmp_path / "robot.toml").write_text(TEMPLATE.replace(BOX, f"solid = {solid}"), encoding="utf-8")
    assert build.main([str(tmp_path / "robot.toml")]) != 0
    assert message in capsys.readouterr().err
