"""Files of cells are read as they state, and every fault in one gets a sentence."""

import numpy as np
import pytest
import trimesh

import twin
from twin.cell.clearance import Clearance
from twin.errors import CellError

ROBOT = twin.load("irb140")


def load(folder, text):
    path = folder / "cell.toml"
    path.write_text(text, encoding="utf-8")
    return twin.load_cell(path)


def l_shape():
    """Return an L of two boxes, which is not convex, in millimetres."""
    points = np.array([[-50, -50], [300, -50], [300, 50], [50, 50], [50, 300], [-50, 300]])
    from trimesh.creation import extrude_triangulation

    triangles = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]])
    return extrude_triangulation(points, triangles, 100.0)


def test_frames_and_placements(tmp_path):
    cell = load(
        tmp_path,
        """margin = 0.01
        [frames.a]
        at = [1, 0, 0]
        rpy_deg = [0, 0, 90]
        [frames.b]
        at = [1, 0, 0]
        parent = "a"
        [objects.box]
        box = [0.2, 0.4, 0.6]
        frame = "b"
        at = [0, 0, 0.5]
        """,
    )
    assert np.allclose(cell.frames["b"][:3, 3], [1, 1, 0])
    (solid,) = (one for one in Clearance(ROBOT, cell).solids if one.name == "box")
    assert np.allclose(solid.T[:3, 3], [1, 1, 0.5])
    assert np.allclose(np.abs(solid.T[:3, :3]) @ solid.half, [0.2, 0.1, 0.3])


@pytest.mark.parametrize("convex", [True, False])
def test_meshes_in_their_units(tmp_path, convex):
    l_shape().export(tmp_path / "l.stl")
    text = f'[objects.l]\nmesh = "l.stl"\nunit = "mm"\nconvex = {str(convex).lower()}\nat = [0.9, 0, 0.2]\n'
    text += "[tool]\nshapes = [{ sphere = 0.01, at = [0, 0, 0] }]"
    clearance = Clearance(ROBOT, load(tmp_path, text))
    parts = [one for one in clearance.solids if one.name == "l"]
    assert len(parts) == (1 if convex else 2)
    from twin.cell.shapes import Solid, coal

    # a point in the notch of the L is inside its hull, and outside of its parts
    point = Solid(-1, "p", coal().Sphere(0.001), np.eye(4), np.full(3, 0.001))
    T = np.eye(4)
    T[:3, 3] = [0.9 + 0.15, 0.15, 0.25]
    library, distances = coal(), []
    for part in parts:
        places = [library.Transform3s(P[:3, :3].copy(), P[:3, 3].copy()) for P in (T, part.T)]
        request, result = library.DistanceRequest(), library.DistanceResult()
        distances.append(
            library.distance(point.geometry, places[0], part.geometry, places[1], request, result)
        )
    assert (min(distances) > 0.05) == (not convex)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("margin = -1", "margin: expected metres from 0 to 20, got -1"),
        ("margins = 1", "unknown key 'margins' in the top level: known are margin"),
        ("[objects.a]\nbox = [1, 1, 0]", "objects.a: expected box sizes above 0"),
        ("[objects.a]\nball = 1", "expected one of box, sphere, cylinder, mesh in a shape"),
        (
            '[objects.a]\nbox = [1, 1, 1]\nframe = "bech"\n[frames.bench]',
            "no frame 'bech', did you mean 'bench'?",
        ),
        (
            '[frames.a]\nparent = "b"\n[frames.b]\nparent = "a"',
            "cell.toml: frames a, b have each other as parents",
        ),
        ('[frames.a]\nparent = "c"', "frames.a: there is no frame 'c'"),
        ('[objects.a]\nmesh = "x.stl"', "table [objects.a] lacks the key 'unit'"),
        ('[objects.a]\nmesh = "x.stl"\nunit = "yard"', "unknown unit 'yard': known are m, cm, mm, inch"),
        ('[[pairs]]\nbetween = ["a"]\nmay_touch = true', "expected between = two names"),
        ('[[pairs]]\nbetween = ["a", "b"]', "expected either may_touch = true or a margin"),
        (
            '[[pairs]]\nbetween = ["a", "b"]\nmargin = -1',
            "pairs, entry 1: margin: expected metres from 0 to 20",
        ),
        ("[base]\nat = [1, 2]", "base.at: expected 3 numbers"),
        ("[tool]\nmass = -1", "tool.mass: expected a number above 0"),
        ("objects = 3", "expected tables [objects.NAME]"),
        ("x = ", "is not a TOML file"),
    ],
)
def test_faulty_files_get_a_sentence(tmp_path, text, message):
    with pytest.raises(CellError) as error:
        load(tmp_path, text)
    assert message in str(error.value)
    assert "cell.toml" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[objects.link_1]\nbox = [1, 1, 1]", "objects.link_1 has the name of a part of the robot"),
        (
            '[[pairs]]\nbetween = ["link_1", "tabel"]\nmay_touch = true\n[objects.table]\nbox=[1,1,1]',
            "no 'tabel'",
        ),
        ("[objects.a]\nbox = [0.1, 0.1, 0.1]\nat = [0, 0, 0.05]", "objects.a is inside the base"),
        ('[objects.a]\nmesh = "none.stl"\nunit = "mm"', "there is no mesh file"),
        ('[objects.a]\nmesh = "l.stl"\nunit = "mm"', "l.stl is not convex: expected convex = true"),
        ('[objects.a]\nmesh = "l.stl"\nunit = "m"\nconvex = true', "is it another unit?"),
    ],
)
def test_cells_that_do_not_fit_get_a_sentence(tmp_path, text, message):
    l_shape().export(tmp_path / "l.stl")
    with pytest.raises(CellError, match=r"cell\.toml") as error:
        Clearance(ROBOT, load(tmp_path, text))
    assert message in str(error.value)


def test_a_robot_without_shapes_is_refused(tmp_path):
    bare = twin.dh_robot("bare", ROBOT.dh)
    with pytest.raises(CellError, match=r"has no <collision> shapes"):
        Clearance(bare, load(tmp_path, "margin = 0"))


@pytest.mark.shared
@pytest.mark.parametrize("name", ["irb140", "irb1600"])
def test_the_cad_is_inside_the_covers(name):
    from tests.support.cover import cad, outside
    from tests.support.shared_data import shared_folder
    from urdf.build import facts_file
    from urdf.facts import read

    links = read(facts_file(name))["link"]
    for link, mesh in zip(["base", *"123456"], cad(name, shared_folder() / "abb_meshes" / name), strict=True):
        points = np.concatenate([mesh.vertices, trimesh.sample.sample_surface(mesh, 20_000, seed=0)[0]])
        beyond = np.min([outside(shape, points) for shape in links[link]["cover"]], axis=0)
        assert beyond.max() < 1e-6, link
