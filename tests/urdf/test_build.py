"""The committed URDFs against the facts they are built from."""

import math
import subprocess
import sys
from decimal import Decimal
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import scenarios.templates
import twin
from tests.support.effort_rule import BEYOND_FLANGE, OFF_AXIS_6, paths_of
from tests.support.refusals import refused
from tests.support.urdf_files import FILES, dh_tool_pose, find, numbers, relative
from twin.robot.loading.mesh_bodies import body_of_mesh
from twin.trajectories.sampling import sample
from urdf import build, decimal_math, stl
from urdf.schema import FactsError
from urdf.solids import bulk

X, Y, Z = np.eye(3).tolist()
AXES = {"irb140": [Z, Y, Y, X, Y, X], "irb1400": [Z, Y, Y, X, Y, X, Y, Y], "irb1600": [Z, Y, Y, X, Y, X]}
# Where the frames of LINKS are at the zero pose, (x, z) in the base frame with y = 0: at their joints.
ORIGINS = {
    "irb140": ((0, 0), (0, 0), (0.070, 0.352), (0.070, 0.712), (0.070, 0.712), (0.450, 0.712), (0.450, 0.712),
               (0.515, 0.712)),
    "irb1400": ((0, 0), (0, 0), (0.150, 0.475), (0.150, 1.075), (0.150, 1.195), (0.870, 1.195),
                (0.870, 1.195), (0.955, 1.195), (0.150, 0.475), (-0.020, 0.475)),
    "irb1600": ((0, 0), (0, 0), (0.150, 0.4865), (0.150, 1.1865), (0.150, 1.1865), (0.750, 1.1865),
                (0.750, 1.1865), (0.815, 1.1865)),
}  # fmt: skip
LINKS = ("base_link", *(f"link_{k}" for k in range(1, 7)), "tool0", "link_lever", "link_rod")


@pytest.fixture(params=FILES)
def file(request):
    return FILES[request.param]


def origins_of(name):
    return {link: (x, 0, z) for link, (x, z) in zip(LINKS, ORIGINS[name], strict=False)}


def link_name(link):
    return "base_link" if link == "base" else f"link_{link}"


def random_q(file, count):
    q_min, q_max = (np.deg2rad(file.facts["joints"][key]) for key in ("q_min_deg", "q_max_deg"))
    return np.random.default_rng(1).uniform(q_min, q_max, (count, len(q_min)))


def test_building_needs_the_standard_library_only():
    """A plain interpreter builds every URDF to the byte: neither numpy nor LAPACK can move a digit."""
    code = (
        "from urdf import build; from urdf.facts import read; from decimal import Decimal; import sys\n"
        f"for name in {tuple(FILES)}:\n"
        "    facts = read(build.HERE / name / 'robot.toml', Decimal)\n"
        "    sys.stdout.buffer.write(build.urdf(facts).encode())"
    )
    plain = ["-S"] if sys.version_info >= (3, 11) else []  # before, tomllib is a site package
    run = subprocess.run(
        [sys.executable, *plain, "-c", code], cwd=build.HERE.parent, capture_output=True, check=True
    )
    assert run.stdout == b"".join(file.path.read_bytes() for file in FILES.values())


def test_masses_sum_to_the_robot_s_and_those_of_the_irb1400_have_one_density():
    file = FILES["irb140"]  # whose printed masses tests/published compares with those of the volumes
    assert sum(file.body(link).mass for link in ("base_link", *file.moving)) == pytest.approx(98, abs=1e-13)
    file = FILES["irb1400"]
    volumes = {
        link: values["volume_mm3"] for link, values in file.facts["link"].items() if "solid" not in values
    }
    volumes["lever"] = 230 * 30 * 60
    volumes["rod"] = np.pi * 20**2 * 600
    assert list(volumes) == list(file.facts["link"])
    masses = {link: file.body(link_name(link)).mass for link in volumes}
    assert sum(masses.values()) == pytest.approx(225, abs=1e-13)
    densities = [masses[link] / volume for link, volume in volumes.items()]
    np.testing.assert_allclose(densities, 225 / sum(volumes.values()), rtol=1e-15)


def test_inertias_are_the_cad_s_scaled(file):
    cad = {link: values for link, values in file.facts["link"].items() if "com" in values}
    for link, values in cad.items():
        body = file.body(link_name(link))
        com = body.com + origins_of(file.name)[link_name(link)]
        np.testing.assert_allclose(com, values["com"], rtol=0, atol=2e-16, err_msg=link)
        xx, yy, zz, xy, xz, yz = np.array(values["inertia"])
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        at_1000 = values.get("mass_1000", values["volume_mm3"] * 1e-6)
        assert relative(body.inertia, tensor * body.mass / at_1000) < 2e-15, link
        moments = np.linalg.eigvalsh(body.inertia)
        assert moments[0] > 0
        assert moments[2] <= moments[0] + moments[1]


def test_axes_and_origins_are_exact_and_tensors_in_principal_axes_but_the_base_s(file):
    axes = [numbers(axis, "xyz").tolist() for axis in file.root.findall("./joint/axis")]
    assert axes == AXES[file.name]
    origins = origins_of(file.name)
    assert [link.attrib["name"] for link in file.root.findall("./link")] == [
        *(link for link in origins if link != "tool0"),
        "tool0",
    ]
    for joint in file.root.findall("./joint"):
        parent, child = (np.array(origins[find(joint, end).attrib["link"]]) for end in ("parent", "child"))
        origin = find(joint, "origin")
        assert numbers(origin, "xyz").tolist() == np.round(child - parent, 12).tolist()
        turned = joint.attrib["name"] == "joint_tool"
        assert origin.attrib["rpy"] == ("0 1.5707963267948966 0" if turned else "0 0 0")
    for link in file.moving:
        inertia = find(file.root, f"./link[@name='{link}']/inertial/inertia")
        assert [inertia.attrib[k] for k in ("ixy", "ixz", "iyz")] == ["0"] * 3, link
    assert find(file.root, "./link[@name='base_link']/inertial/origin").attrib["rpy"] == "0 0 0"
    tool = find(file.root, "./link[@name='tool0']/inertial")
    assert {float(x) for element in tool[1:] for x in element.attrib.values()} == {0.0}


def test_limits(file):
    joints = {joint.attrib["name"]: joint for joint in file.joints("revolute")}
    driven = [find(joints[name], "limit") for name in file.facts["joints"]["names"]]
    for key, name in (("q_min_deg", "lower"), ("q_max_deg", "upper"), ("qd_max_deg_s", "velocity")):
        limits = [float(limit.attrib[name]) for limit in driven]
        np.testing.assert_allclose(limits, np.deg2rad(file.facts["joints"][key]), rtol=3e-16)
    assert [float(limit.attrib["effort"]) for limit in driven] == file.facts["joints"]["effort"]
    for name in set(joints) - set(file.facts["joints"]["names"]):
        # 75 degrees either way, and as fast as axes 2 and 3 at 120 deg/s against each other; no motor.
        limit = find(joints[name], "limit").attrib
        found = [float(limit[k]) for k in ("lower", "upper", "velocity")]
        np.testing.assert_allclose(found, np.deg2rad([-75, 75, 240]), rtol=3e-16)
        assert limit["effort"] == "0"


def test_the_chain_is_the_dh_table_s_and_has_the_published_poses(file):
    dh = file.facts["dh"]
    for q in (np.zeros(6), *random_q(file, 100)):
        np.testing.assert_allclose(file.poses(q)["tool0"], dh_tool_pose(dh, q), rtol=0, atol=2e-15)
    published = {name: pose for name, pose in file.facts["poses"].items() if "flange" in pose}
    assert list(published) == {"irb140": ["test_1", "test_3"], "irb1400": ["zero"], "irb1600": []}[file.name]
    for pose in published.values():
        T = file.poses(np.deg2rad(pose["q_deg"]))["tool0"]
        found = [*T[:3, 3], *Rotation.from_matrix(T[:3, :3]).as_quat(canonical=True, scalar_first=True)]
        np.testing.assert_allclose(found, pose["flange"], rtol=0, atol=max(pose["flange_tolerance"], 2e-15))


def test_the_parallelogram_is_of_homogeneous_solids_and_closed_in_every_pose():
    """The end of the rod stays in the housing's eye, 0.170 m behind axis 3, along the lever's direction."""
    file = FILES["irb1400"]
    lever, rod = (file.body(link) for link in ("link_lever", "link_rod"))
    np.testing.assert_allclose(lever.com, [-0.085, 0, 0], rtol=0, atol=2e-17)  # half-way between the eyes
    np.testing.assert_allclose(rod.com, [0, 0, 0.300], rtol=0, atol=2e-17)
    x, y, z = 0.230**2, 0.030**2, 0.060**2
    assert relative(lever.inertia, np.diag([y + z, x + z, x + y]) * lever.mass / 12) < 1e-15
    along, across = 0.020**2 / 2, 0.020**2 / 4 + 0.600**2 / 12
    assert relative(rod.inertia, np.diag([across, across, along]) * rod.mass) < 1e-15
    for q in random_q(file, 100):
        poses = file.poses(q)
        end = poses["link_rod"] @ [0, 0, 0.600, 1]
        eye = poses["link_3"] @ [-0.170, 0, 0, 1]
        np.testing.assert_allclose(end, eye, rtol=0, atol=1e-15)


# The decimal trigonometry and principal axes behind the byte-identical URDF, against numpy and scipy.


def test_roll_pitch_yaw_of_quarter_turns():
    """Exact, also at a pitch of 90 degrees, where roll and yaw are one turn."""
    for turns in product((-90, 0, 90, 180), repeat=3):
        R = np.round(Rotation.from_euler("xyz", turns, degrees=True).as_matrix())
        with decimal_math.precisely():
            rpy = decimal_math.roll_pitch_yaw([[Decimal(x) for x in row] for row in R.tolist()])
        found = Rotation.from_euler("xyz", np.array(rpy, float)).as_matrix()
        np.testing.assert_allclose(found, R, rtol=0, atol=1e-15)


def test_principal_axes_of_hard_tensors():
    """Diagonal, with equal moments, nearly equal moments, and moments far apart."""
    rng = np.random.default_rng(2)
    for moments in ([1, 2, 3], [2, 2, 2], [1, 1, 1 + 1e-13], [1, 1e6, 1e6], [1e-9, 2e-9, 2e-9]):
        for R in (np.eye(3), *Rotation.random(5, rng=rng).as_matrix()):
            A = R @ np.diag(np.array(moments, float)) @ R.T
            A = (A + A.T) / 2
            with decimal_math.precisely():
                found, axes = decimal_math.principal_axes([[Decimal(x) for x in row] for row in A.tolist()])
                rpy = np.array(decimal_math.roll_pitch_yaw(axes), float)
            rebuilt = Rotation.from_euler("xyz", rpy).as_matrix()
            assert np.linalg.det(np.array(axes, float)) == pytest.approx(1, abs=1e-15)
            assert relative(rebuilt @ np.diag(np.array(found, float)) @ rebuilt.T, A) < 2e-15


# The effort limits of the URDFs follow from the scenarios by the rule that the robot.toml files state.


MARGIN = 1.5


def peak_torques(robot, path):
    """Largest |tau| of each joint with the payload, the path hurried until a joint is at its speed limit."""
    samples = sample(path, 1e-3)
    hurry = 1.0 / np.max(np.abs(samples.qd) / robot.qd_max)
    motion = (samples.q, hurry * samples.qd, hurry**2 * samples.qdd)
    peaks = []
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        com = (x * OFF_AXIS_6, y * OFF_AXIS_6, BEYOND_FLANGE)
        loaded = robot.with_payload(twin.Payload(robot.rating.payload, com))
        peaks.append(np.max(np.abs(twin.inverse_dynamics(loaded, *motion)), axis=0))
    return np.max(peaks, axis=0)


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_effort_is_the_rule_applied_to_the_scenarios(name):
    robot = twin.load(name)
    peak = np.max([peak_torques(robot, path) for path in paths_of(robot)], axis=0)
    assert robot.tau_max.tolist() == [math.ceil(MARGIN * tau) for tau in peak.tolist()]


# Mass properties of solids against an independent integral over them.


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


@pytest.mark.parametrize("end", [(-0.02, 0, 1.075), (0.3, 0, 0.475), (0.25, -0.4, 0.7), (-0.02, -0.3, 0.2)])
def test_cylinder_in_any_direction(end):
    """Radius, angle and height; over the angle, equal steps integrate exactly."""
    start, radius = np.array([-0.020, 0, 0.475]), 0.020
    axis = np.array(end) - start
    R = Rotation.align_vectors([axis / np.linalg.norm(axis)], [[0, 0, 1]])[0].as_matrix()
    ring, weights = grid([0, -0.5, 0], [radius, 0.5, np.linalg.norm(axis)])
    points = []
    for angle in 2 * np.pi * np.arange(8) / 8:
        local = np.stack([ring[:, 0] * np.cos(angle), ring[:, 0] * np.sin(angle), ring[:, 2]], axis=-1)
        points.append(start + local @ R.T)
    volumes = np.tile(weights * ring[:, 0] * 2 * np.pi / 8, 8)
    solid = {"cylinder": radius, "from": start.tolist(), "to": list(end)}
    check(solid, np.concatenate(points), volumes)


def test_the_cad_s_mass_follows_from_the_volume():
    values = {"volume_mm3": 2_000_000, "com": [0.1, 0, 0.2], "inertia": [4.0, 5.0, 6.0, 0.1, 0.2, 0.3]}
    for extra, mass in ({}, 2.0), ({"mass_1000": 2.5}, 2.5):
        with decimal_math.precisely():
            found = bulk(values | extra)
        assert float(found.volume) == 0.002
        expected = np.array([[4.0, 0.1, 0.2], [0.1, 5.0, 0.3], [0.2, 0.3, 6.0]]) / mass
        np.testing.assert_allclose(np.array(found.inertia, float), expected, rtol=1e-15)


# The shapes that a robot is drawn with have the bulk that its mass properties say.


DRAWN = [(name, link, values) for name, file in FILES.items() for link, values in file.facts["link"].items()]


def is_hollow(values):
    return "hollow_box" in values.get("solid", {})


def in_shape(shape, points):
    """Which of the points (N, 3) lie in one shape of `robot.toml`."""
    if "box" in shape:
        R = Rotation.from_euler("xyz", shape.get("rpy_deg", [0, 0, 0]), degrees=True).as_matrix()
        return np.all(np.abs((points - shape["at"]) @ R) <= np.array(shape["box"]) / 2, axis=1)
    start, end = np.array(shape["from"], float), np.array(shape["to"], float)
    length = np.linalg.norm(end - start)
    along = (points - start) @ (end - start) / length
    off_axis = np.sum((points - start) ** 2, axis=1) - along**2
    return (along >= 0) & (along <= length) & (off_axis <= shape["cylinder"] ** 2)


def extent(shape):
    """Lowest and highest corner, (2, 3), of one shape."""
    if "box" in shape:
        R = Rotation.from_euler("xyz", shape.get("rpy_deg", [0, 0, 0]), degrees=True).as_matrix()
        half = np.abs(R) @ np.array(shape["box"]) / 2
        return np.array([shape["at"] - half, shape["at"] + half])
    ends = np.array([shape["from"], shape["to"]], float)
    axis = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    across = shape["cylinder"] * np.sqrt(np.maximum(1 - axis**2, 0))
    return np.array([ends.min(axis=0) - across, ends.max(axis=0) + across])


def bounds(shapes):
    """Lowest and highest corner, (2, 3), of all shapes together."""
    corners = np.array([extent(shape) for shape in shapes])
    return np.array([corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)])


def sampled(shapes, seed):
    """Points within the shapes, (N, 3), and their volume in [m^3]."""
    low, high = bounds(shapes)
    points = np.random.default_rng(seed).uniform(low, high, (30_000, 3))
    inside = np.any([in_shape(shape, points) for shape in shapes], axis=0)
    return points[inside], inside.mean() * np.prod(high - low)


@pytest.mark.parametrize("kind", ["visual", "collision"])
def test_shapes_have_the_bulk_of_the_link(kind):
    """As `robot.toml` claims: volume within 20 % and centre within 25 mm."""
    for name, link, values in DRAWN:
        if not is_hollow(values):
            points, volume = sampled(values[kind], seed=3)
            expected = bulk(values)
            assert 0.8 < volume / float(expected.volume) < 1.2, (name, link)
            distance = np.linalg.norm(points.mean(axis=0) - np.array(expected.com, float))
            assert distance < 0.025, (name, link)


@pytest.mark.parametrize(("kind", "tolerance"), [("visual", 0.003), ("collision", 0.030)])
def test_shapes_fill_the_extents_of_a_hollow_box(kind, tolerance):
    """As `robot.toml` claims; a box is all corners, so its volume and centre are not the shapes'."""
    for name, link, values in DRAWN:
        if is_hollow(values):
            half = np.array(values["solid"]["hollow_box"]) / 2
            beyond = bounds(values[kind]) - (values["solid"]["at"] + np.array([-half, half]))
            assert np.max(np.abs(beyond)) < tolerance, (name, link)
            assert np.all(beyond[0] > -0.003), (name, link)
            assert np.all(beyond[1] < 0.003), (name, link)


def test_products_of_inertia_have_the_sign_of_the_bulk():
    """Ixy = -integral of x y dm, where it is large: a CAD's own tool may print the opposite sign."""
    for case in ("irb140 base xz", "irb140 1 xz", "irb140 1 yz", "irb140 2 yz",
                 "irb1400 base xz", "irb1400 1 xz", "irb1400 3 xz"):  # fmt: skip
        name, link, product = case.split()
        values = FILES[name].facts["link"][link]
        points, _ = sampled(values["visual"], seed=4)
        i, j = ("xyz".index(letter) for letter in product)
        correlation = np.corrcoef(points.T)[i, j]
        assert abs(correlation) > 0.05, case
        inertia = values["inertia"][("xy", "xz", "yz").index(product) + 3]
        assert np.sign(inertia) == -np.sign(correlation), case


# Links of a robot.toml whose solid is what an STL mesh bounds.


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
