"""Files of cells are read as they state, and every fault in one gets a sentence."""

import numpy as np
import pytest
import trimesh

import twin
from twin.base.errors import CellError
from twin.studies.cell.cell import coal
from twin.studies.cell.clearance import Clearance

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
        [frames.turned]
        rpy_deg = [90, 0, 90]
        [objects.box]
        box = [0.2, 0.4, 0.6]
        frame = "b"
        at = [0, 0, 0.5]
        """,
    )
    assert np.allclose(cell.frames["b"][:3, 3], [1, 1, 0])
    assert np.allclose(cell.frames["turned"][:3, 0], [0, 1, 0])  # x stays with the first turn
    (solid,) = (one for one in Clearance(ROBOT, cell).solids if one.name == "box")
    assert np.allclose(solid.T[:3, 3], [1, 1, 0.5])
    assert np.allclose(np.abs(solid.T[:3, :3]) @ solid.half, [0.2, 0.1, 0.3])


@pytest.mark.parametrize(("convex", "count"), [("true", 1), ("false", 2)])
def test_meshes_in_their_units(tmp_path, convex, count):
    l_shape().export(tmp_path / "l.stl")
    text = f'[objects.l]\nmesh = "l.stl"\nunit = "mm"\nconvex = {convex}\nat = [0.9, 0, 0.2]\n'
    cell = load(tmp_path, f"{text}[objects.point]\nsphere = 0.001\nat = [1.05, 0.15, 0.25]")
    clearance = Clearance(ROBOT, cell)
    parts = [one for one in clearance.solids if one.name == "l"]
    assert len(parts) == count
    (point,) = (one for one in clearance.solids if one.name == "point")
    # in the notch of the L: inside its hull, and outside of its parts
    assert (min(coal_distance(point, part) for part in parts) > 0.05) == (convex == "false")


def coal_distance(a, b):
    library = coal()
    places = [library.Transform3s(one.T[:3, :3].copy(), one.T[:3, 3].copy()) for one in (a, b)]
    request, result = library.DistanceRequest(), library.DistanceResult()
    return library.distance(a.geometry, places[0], b.geometry, places[1], request, result)


BOX = "[objects.a]\nbox = [1, 1, 1]"
RULES = '[[pairs]]\nbetween = ["a", "b"]\nmargin = 1\n[[pairs]]\nbetween = ["b", "a"]\nmay_touch = true'
FAULTY = [
    ("margin = -1", "margin: expected metres from 0 to 2, got -1"),
    ("margins = 1", "unknown key 'margins' in the top level: known are margin"),
    ("[objects.a]\nbox = [1, 1, 0]", "objects.a: expected box sizes above 0"),
    ("[objects.a]\nball = 1", "expected one of box, sphere, cylinder, mesh in a shape"),
    (f'{BOX}\nframe = "bech"\n[frames.bench]', "no frame 'bech', did you mean 'bench'?"),
    ('[frames.a]\nparent = "b"\n[frames.b]\nparent = "a"', "frames a, b have each other as parents"),
    ('[frames.a]\nparent = "c"', "frames.a: there is no frame 'c'"),
    ('[objects.a]\nmesh = "x.stl"', "table [objects.a] lacks the key 'unit'"),
    ('[objects.a]\nmesh = "x.stl"\nunit = "yard"', "unknown unit 'yard': known are m, cm, mm, inch"),
    ('[[pairs]]\nbetween = ["a"]\nmay_touch = true', "expected between = two different names"),
    ('[[pairs]]\nbetween = ["a", "b"]', "expected either may_touch = true or a margin"),
    ('[[pairs]]\nbetween = ["a", "b"]\nmargin = -1', "pairs, entry 1: margin: expected metres from 0 to 2"),
    ("[base]\nat = [1, 2]", "base.at: expected 3 numbers"),
    ("[tool]\nmass = -1", "tool.mass: expected a number above 0"),
    ("objects = 3", "expected tables [objects.NAME]"),
    ("x = ", "is not a TOML file"),
    ("margin = 10", "margin: expected metres from 0 to 2, got 10"),
    ("pairs = 3", "expected tables [[pairs]], got pairs = 3"),
    ('[[pairs]]\nbetween = ["a", "a"]\nmargin = 1', "expected between = two different names"),
    (RULES, "pairs, entry 2: expected one rule for b and a, this is another"),
    ("[objects.a]\nshapes = [{ sphere = 1 }]\nat = [1, 0, 0]", "unknown key 'at' in table [objects.a]"),
    ("[objects.a]\nshapes = []", "objects.a: expected at least one shape, got shapes = []"),
    ("[objects.a]\nbox = [600, 800, 40]", "objects.a.box: expected metres, at most 20, got [600, 800, 40]"),
    (f"{BOX}\nat = [1e300, 0, 0]", "objects.a.at: expected metres, at most 20"),
    ("[objects.a]\ncylinder = 50\nfrom = [1, 0, 0]\nto = [1, 0, 1]", "objects.a.cylinder: expected metres"),
    ("[objects.a]\ncylinder = 1\nfrom = [1, 0, 0]\nto = [1, 0, 1e-300]", "has no length"),
    ("[frames.a]\nat = [700, -200, 100]", "frames.a.at: expected metres, at most 20"),
    ("[frames.world]\nat = [1, 0, 0]", "frames.world: expected another name"),
    ("[base]\nat = [1000, 0, 0]", "base.at: expected metres, at most 20"),
    ("[tool]\ntcp = { at = [0, 0, 150] }", "got [0, 0, 150]: are these millimetres?"),
    ("[tool]\nmass = 1\ncom = [0, 0, 60]", "tool.com: expected metres, at most 20"),
    ("[tool]\nmass = 1\ninertia = [-1, 1, 1, 0, 0, 0]", "tool: no body has the principal moments"),
]
ALIEN = "has the name of a part of the robot or of the world, rename it: reserved are base, link_1"
MESH = '[objects.a]\nmesh = "{}.stl"\nunit = "mm"\nconvex = {}'
RULE = (
    f"{BOX}\nat = [0, 0, 3]\n[objects.b]\nbox = [1, 1, 1]\nat = [0, 3, 3]\n[[pairs]]\nmargin = 1\nbetween = "
)
MISFITS = [
    *((BOX.replace("a]", f"{name}]"), ALIEN) for name in ("link_1", "tool", "base", "world")),
    (f'[[pairs]]\nbetween = ["link_1", "c"]\nmay_touch = true\n{BOX}', "there is no 'c'"),
    (f'{RULE}["a", "b"]', "a and b are never judged, remove the rule"),
    (f'{RULE}["base", "b"]', "b and base are never judged, remove the rule"),
    (f'{RULE}["link_2", "link_1"]', "link_1 and link_2 are never judged, remove the rule"),
    ("[objects.a]\nbox = [0.1, 0.1, 0.1]\nat = [0, 0, 0.05]", "objects.a is inside the base"),
    ('[objects.a]\nmesh = "none.stl"\nunit = "mm"', "there is no mesh file"),
    (f'[objects.a]\nmesh = "{"n" * 999}.stl"\nunit = "mm"', "there is no mesh file"),
    ('[objects.a]\nmesh = "l.stl"\nunit = "mm"', "l.stl is not convex: expected convex = true"),
    ('[objects.a]\nmesh = "l.stl"\nunit = "m"\nconvex = true', "is it another unit?"),
    *((MESH.format("flat", convex), "flat.stl is flat: expected a mesh") for convex in ("true", "false")),
    (MESH.format("line", "true"), "line.stl is flat: expected a mesh with a volume"),
    (
        MESH.format("open", "false"),
        "open.stl is not a closed surface: expected convex = true to take its hull",
    ),
]


@pytest.mark.parametrize(("text", "message"), FAULTY)
def test_faulty_files_get_a_sentence(tmp_path, text, message):
    with pytest.raises(CellError, match=r"cell\.toml") as error:
        load(tmp_path, text)
    assert message in str(error.value)


@pytest.mark.parametrize(("text", "message"), MISFITS)
def test_cells_that_do_not_fit_get_a_sentence(tmp_path, text, message):
    mesh = l_shape()
    mesh.export(tmp_path / "l.stl")
    trimesh.Trimesh(mesh.vertices, mesh.faces[3:]).export(tmp_path / "open.stl")
    for name, scale in (("flat", [1, 1, 0]), ("line", [1, 0, 0])):
        trimesh.Trimesh(mesh.vertices * scale, mesh.faces, process=False).export(tmp_path / f"{name}.stl")
    with pytest.raises(CellError, match=r"cell\.toml") as error:
        Clearance(ROBOT, load(tmp_path, text))
    assert message in str(error.value)


def test_a_long_chain_of_frames_and_a_byte_order_mark_are_read(tmp_path):
    """An editor of Windows writes the mark."""
    frames = "".join(f'[frames.f{k}]\nat = [0.001, 0, 0]\nparent = "f{k + 1}"\n' for k in range(3000))
    cell = load(tmp_path, f"\ufeff{frames}[frames.f3000]")
    assert np.isclose(cell.frames["f0"][0, 3], 3.0)


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
