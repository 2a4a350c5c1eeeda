"""The committed URDF against the facts it is built from, and against the four libraries that load it."""

import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

import mujoco
import numpy as np
import pinocchio as pin
import pybullet
import pytest
from pybullet_utils.bullet_client import BulletClient
from scipy.spatial.transform import Rotation

from urdf import build
from urdf.facts import read

HERE = build.HERE
TOML = HERE / "irb140" / "robot.toml"
URDF = HERE / "irb140" / "irb140.urdf"
FACTS = read(TOML)
ROOT = ET.parse(URDF).getroot()
MOVING = [f"link_{i}" for i in range(1, 7)]
# Where the link frames are at the zero pose, in the base frame: at their joints.
ORIGINS = np.array([[0, 0, 0]] * 2 + [[0.07, 0, 0.352]] + [[0.07, 0, 0.712]] * 2 + [[0.45, 0, 0.712]] * 2)


class Body(NamedTuple):
    """Mass in [kg], com (3,) in [m] and inertia (3, 3) about the com in [kg m^2], in link axes."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray


def numbers(element, attribute):
    return np.array([float(x) for x in element.get(attribute).split()])


def find(path):
    """The one element at an XPath, which must exist."""
    element = ROOT.find(path)
    assert element is not None, path
    return element


def written(link):
    """The `<inertial>` of a link as the file says it, turned into link axes."""
    origin, mass, inertia = find(f"./link[@name='{link}']/inertial")
    xx, yy, zz, xy, xz, yz = (float(inertia.attrib[k]) for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    R = Rotation.from_euler("xyz", numbers(origin, "rpy")).as_matrix()
    tensor = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    return Body(float(mass.attrib["value"]), numbers(origin, "xyz"), tensor)


def relative(a, b):
    return np.max(np.abs(np.asarray(a) - b)) / np.max(np.abs(b))


def test_a_rebuild_is_byte_identical(tmp_path):
    assert build.urdf(read(TOML, parse_float=Decimal)).encode() == URDF.read_bytes()


def test_building_needs_the_standard_library_only(tmp_path):
    """A plain interpreter builds it: no site packages, so neither numpy nor LAPACK can move a digit."""
    code = (
        "from urdf import build; from urdf.facts import read; from decimal import Decimal; import sys; "
        "sys.stdout.buffer.write(build.urdf(read(build.HERE / 'irb140' / 'robot.toml', Decimal)).encode())"
    )
    plain = ["-S"] if sys.version_info >= (3, 11) else []  # before, tomllib is a site package
    run = subprocess.run(
        [sys.executable, *plain, "-c", code], cwd=HERE.parent, capture_output=True, check=True
    )
    assert run.stdout == URDF.read_bytes()


def test_masses_are_the_thesis_s():
    """Aliaga 2019, eq. (3.5) and the table above it: every printed digit, to half a unit of the last."""
    assert sum(written(link).mass for link in ("base_link", *MOVING)) == pytest.approx(98, abs=1e-13)
    exactly = read(TOML, parse_float=Decimal)
    for link, values in zip(("base_link", *MOVING), exactly["link"].values(), strict=True):
        printed = values["mass_printed"]
        half_unit = 0.5 * 10.0 ** printed.as_tuple().exponent
        assert abs(written(link).mass - float(printed)) <= half_unit, link


@pytest.mark.parametrize("i", range(7))
def test_inertias_are_the_cad_s_scaled(i):
    link = FACTS["link"][str(i or "base")]
    body = written(f"link_{i}" if i else "base_link")
    np.testing.assert_allclose(body.com + ORIGINS[i], link["com"], rtol=0, atol=2e-16)
    mass = 98 * link["volume_mm3"] / sum(values["volume_mm3"] for values in FACTS["link"].values())
    assert body.mass == pytest.approx(mass, rel=1e-15)
    xx, yy, zz, xy, xz, yz = np.array(link["inertia"]) * mass / link["mass_1000"]
    assert relative(body.inertia, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])) < 2e-15
    moments = np.linalg.eigvalsh(body.inertia)
    assert moments[0] > 0
    assert moments[2] <= moments[0] + moments[1]


def test_inertials_are_in_principal_axes_but_the_base_s():
    for link in MOVING:
        inertia = find(f"./link[@name='{link}']/inertial/inertia")
        assert [inertia.attrib[k] for k in ("ixy", "ixz", "iyz")] == ["0"] * 3, link
    assert find("./link[@name='base_link']/inertial/origin").attrib["rpy"] == "0 0 0"
    tool = find("./link[@name='tool0']/inertial")
    assert {float(x) for element in tool[1:] for x in element.attrib.values()} == {0.0}


def test_axes_and_origins_are_exact():
    axes = [numbers(axis, "xyz").tolist() for axis in ROOT.findall("./joint/axis")]
    x, y, z = np.eye(3).tolist()
    assert axes == [z, y, y, x, y, x]
    places = [numbers(origin, "xyz").tolist() for origin in ROOT.findall("./joint/origin")]
    expected = np.round([b - a for a, b in pairwise([*ORIGINS, np.array([0.515, 0, 0.712])])], 12)
    assert places == expected.tolist()
    assert find("./joint[@name='joint_tool']/origin").attrib["rpy"] == "0 1.5707963267948966 0"


def test_limits():
    for key, name in (("q_min_deg", "lower"), ("q_max_deg", "upper"), ("qd_max_deg_s", "velocity")):
        limits = [float(limit.attrib[name]) for limit in ROOT.findall("./joint/limit")]
        np.testing.assert_allclose(limits, np.deg2rad(FACTS["joints"][key]), rtol=3e-16)
    efforts = [float(limit.attrib["effort"]) for limit in ROOT.findall("./joint/limit")]
    assert efforts == FACTS["joints"]["effort"]


def dh_tool_pose(q):
    """Product of the DH matrices of Table 3-1, (4, 4), independently of the builder's exact one."""
    T = np.eye(4)
    dh = FACTS["dh"]
    rows = zip(q + np.deg2rad(dh["theta0_deg"]), dh["d"], dh["a"], np.deg2rad(dh["alpha_deg"]), strict=True)
    for theta, d, a, alpha in rows:
        A, B = np.eye(4), np.eye(4)
        A[:3, :3], A[2, 3] = Rotation.from_rotvec([0, 0, theta]).as_matrix(), d
        B[:3, :3], B[0, 3] = Rotation.from_rotvec([alpha, 0, 0]).as_matrix(), a
        T = T @ A @ B
    return T


def urdf_tool_pose(q):
    T = np.eye(4)
    angles = dict(zip(FACTS["joints"]["names"], q, strict=True))
    for joint in ROOT.findall("./joint"):
        step, turn = np.eye(4), np.eye(4)
        origin, axis = joint.find("origin"), joint.find("axis")
        step[:3, 3] = numbers(origin, "xyz")
        step[:3, :3] = Rotation.from_euler("xyz", numbers(origin, "rpy")).as_matrix()
        if axis is not None:
            turn[:3, :3] = Rotation.from_rotvec(
                angles[joint.attrib["name"]] * numbers(axis, "xyz")
            ).as_matrix()
        T = T @ step @ turn
    return T


def test_the_chain_is_the_dh_table_s():
    np.testing.assert_allclose(urdf_tool_pose(np.zeros(6)), dh_tool_pose(np.zeros(6)), rtol=0, atol=3e-16)
    rng = np.random.default_rng(1)
    q_min, q_max = (np.deg2rad(FACTS["joints"][key]) for key in ("q_min_deg", "q_max_deg"))
    for q in rng.uniform(q_min, q_max, (100, 6)):
        np.testing.assert_allclose(urdf_tool_pose(q), dh_tool_pose(q), rtol=0, atol=2e-15)


def in_urchin():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its dependencies' own deprecations
        import urchin

        links = urchin.URDF.load(str(URDF)).link_map
    bodies = []
    for name in MOVING:
        inertial = links[name].inertial
        R, com = inertial.origin[:3, :3], inertial.origin[:3, 3]
        bodies.append(Body(inertial.mass, com, R @ inertial.inertia @ R.T))
    return bodies


def in_pybullet():
    """Link i of PyBullet hangs on joint i; the inertial frame carries the principal axes."""
    client = BulletClient(pybullet.DIRECT)
    robot = client.loadURDF(str(URDF), flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
    names = [client.getJointInfo(robot, j)[12].decode() for j in range(client.getNumJoints(robot))]
    assert names == [*MOVING, "tool0"]
    bodies = []
    for j in range(6):
        mass, _, moments, com, quaternion = client.getDynamicsInfo(robot, j)[:5]
        R = Rotation.from_quat(quaternion).as_matrix()
        bodies.append(Body(mass, np.array(com), R @ np.diag(moments) @ R.T))
    client.disconnect()
    return bodies


def in_pinocchio():
    """Pinocchio keeps a body per moving joint, the fixed `tool0` merged into the last, and drops the base."""
    model = pin.buildModelFromUrdf(str(URDF))
    assert list(model.names)[1:] == FACTS["joints"]["names"]
    return [Body(body.mass, body.lever, body.inertia) for body in list(model.inertias)[1:]]


def in_mujoco():
    """MuJoCo fuses the base with the world and `tool0` with the last link; quaternions are scalar first."""
    model = mujoco.MjModel.from_xml_path(str(URDF))
    assert model.nbody == 7
    bodies = []
    for name in MOVING:
        body = model.body(name)
        R = Rotation.from_quat(body.iquat, scalar_first=True).as_matrix()
        bodies.append(Body(body.mass[0], body.ipos, R @ np.diag(body.inertia) @ R.T))
    return bodies


@pytest.mark.parametrize("load", [in_urchin, in_pybullet, in_pinocchio, in_mujoco])
def test_loads_unchanged_with_the_same_bodies(load):
    for name, body in zip(MOVING, load(), strict=True):
        expected = written(name)
        assert relative(body.mass, expected.mass) < 1e-15, name
        assert relative(body.com, expected.com) < 1e-12, name
        assert relative(body.inertia, expected.inertia) < 1e-12, name


def test_numbers_read_back_as_the_same_doubles():
    """Shortest texts: no digit more than a double has, no "-0", no "1.0"."""
    texts = re.findall(r'"([^"]*)"', URDF.read_text(encoding="utf-8").split("<robot", 1)[1])
    values = [word for text in texts for word in text.split() if re.fullmatch(r"[-+.\d]+(e[-+]?\d+)?", word)]
    assert len(values) > 500
    for word in values:
        assert word == repr(float(word)).removesuffix(".0")
        assert word != "-0"


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


def bounds(shapes):
    """Lowest and highest corner, (2, 3), of a box that holds all shapes, with room to spare."""
    corners = []
    for shape in shapes:
        radius = np.linalg.norm(shape["box"]) / 2 if "box" in shape else shape["cylinder"]
        for place in ("at", "from", "to"):
            if place in shape:
                corners += [np.array(shape[place]) - radius, np.array(shape[place]) + radius]
    return np.array([np.min(corners, axis=0), np.max(corners, axis=0)])


@pytest.mark.parametrize("kind", ["visual", "collision"])
@pytest.mark.parametrize("link", list(FACTS["link"]))
def test_shapes_have_the_bulk_of_the_cad(link, kind):
    """As `robot.toml` claims: volume within 20 % and centre within 25 mm of the CAD's."""
    shapes = FACTS["link"][link][kind]
    low, high = bounds(shapes)
    points = np.random.default_rng(3).uniform(low, high, (30_000, 3))
    inside = np.any([in_shape(shape, points) for shape in shapes], axis=0)
    volume = inside.mean() * np.prod(high - low) * 1e9
    assert 0.8 < volume / FACTS["link"][link]["volume_mm3"] < 1.2
    assert np.linalg.norm(points[inside].mean(axis=0) - FACTS["link"][link]["com"]) < 0.025


@pytest.mark.parametrize(("link", "product"), [("base", "xz"), ("1", "xz"), ("1", "yz"), ("2", "yz")])
def test_products_of_inertia_have_the_sign_of_the_bulk(link, product):
    """Ixy = -integral of x y dm, where it is large: the CAD's own tool prints the opposite sign."""
    shapes = FACTS["link"][link]["visual"]
    low, high = bounds(shapes)
    points = np.random.default_rng(4).uniform(low, high, (30_000, 3))
    points = points[np.any([in_shape(shape, points) for shape in shapes], axis=0)]
    i, j = ("xyz".index(letter) for letter in product)
    correlation = np.corrcoef(points.T)[i, j]
    assert abs(correlation) > 0.05
    assert np.sign(FACTS["link"][link]["inertia"][("xy", "xz", "yz").index(product) + 3]) == -np.sign(
        correlation
    )
