"""The committed URDFs against the facts they are built from, and in four libraries that load them."""

import subprocess
import sys
import warnings
from decimal import Decimal
from itertools import product

import mujoco
import numpy as np
import pinocchio as pin
import pybullet
import pytest
from pybullet_utils.bullet_client import BulletClient
from scipy.spatial.transform import Rotation

from tests.support.urdf_files import FILES, Body, dh_tool_pose, find, numbers, relative
from urdf import build, decimal_math

X, Y, Z = np.eye(3).tolist()
AXES = [Z, Y, Y, X, Y, X, Y, Y]  # the last two of an arm with a parallelogram
# Where the frames of LINKS are at the zero pose, (x, z) in the base frame with y = 0: at their joints.
# Those of the arms that are not here follow from the lengths of their DH tables.
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
    facts = FILES[name].facts
    (d1, _, _, d4, _, d6), (a1, a2, a3, *_) = facts["dh"]["d"], facts["dh"]["a"]
    elbow, wrist = d1 + a2, d1 + a2 + a3
    chain = ((0, 0), (0, 0), (a1, d1), (a1, elbow), (a1, wrist), (a1 + d4, wrist), (a1 + d4, wrist),
             (a1 + d4 + d6, wrist))  # fmt: skip
    passive = [joint for joint in facts.get("joint", {}).values() if joint["child"] not in "123456"]
    linkage = [joint["at"][::2] for joint in passive]
    places = ORIGINS.get(name, (*chain, *linkage))
    return {link: (round(x, 12), 0, round(z, 12)) for link, (x, z) in zip(LINKS, places, strict=False)}


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
    command = [sys.executable, *plain, "-c", code]
    run = subprocess.run(command, cwd=build.HERE.parent, capture_output=True, check=True)
    assert run.stdout == b"".join(file.path.read_bytes() for file in FILES.values())


def test_masses_are_shares_of_the_data_sheet_s(file):
    """By volume, at one density; where links have published masses, those."""
    links = file.facts["link"]
    masses = {link: file.body(link_name(link)).mass for link in links}
    if "mass" not in file.facts:
        assert masses == {link: pytest.approx(values["mass"], rel=1e-15) for link, values in links.items()}
        return
    assert sum(masses.values()) == pytest.approx(file.facts["mass"], abs=1e-12)
    volumes = {link: one["volume_mm3"] for link, one in links.items() if "solid" not in one}
    if file.name == "irb1400":
        volumes |= {"lever": 230 * 30 * 60, "rod": np.pi * 20**2 * 600}
        assert list(volumes) == list(links)
    if volumes:
        densities = np.array([masses[link] / volume for link, volume in volumes.items()])
        np.testing.assert_allclose(densities, densities[0], rtol=2e-15)
        assert 1e-6 < densities[0] < 3e-6  # between water and aluminium with motors, in kg/mm^3


def test_inertias_are_the_cad_s_scaled(file):
    cad = {link: values for link, values in file.facts["link"].items() if "com" in values}
    for link, values in cad.items():
        body = file.body(link_name(link))
        com = body.com + origins_of(file.name)[link_name(link)]
        last_digit = np.spacing(np.max(np.abs(com)))
        np.testing.assert_allclose(com, values["com"], rtol=0, atol=max(2e-16, last_digit), err_msg=link)
        xx, yy, zz, xy, xz, yz = np.array(values["inertia"])
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        at_1000 = values.get("mass_1000", values["volume_mm3"] * 1e-6)
        assert relative(body.inertia, tensor * body.mass / at_1000) < 2e-15, link
        moments = np.linalg.eigvalsh(body.inertia)
        assert moments[0] > 0
        assert moments[2] <= moments[0] + moments[1]


def test_axes_and_origins_are_exact_and_tensors_in_principal_axes_but_the_base_s(file):
    axes = [numbers(axis, "xyz").tolist() for axis in file.root.findall("./joint/axis")]
    assert axes == AXES[: len(axes)]
    origins = origins_of(file.name)
    links = [link.attrib["name"] for link in file.root.findall("./link")]
    assert links == [*(link for link in origins if link != "tool0"), "tool0"]
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


def test_the_chain_is_the_dh_table_s_and_has_the_published_poses(file):
    dh = file.facts["dh"]
    for q in (np.zeros(6), *random_q(file, 20)):
        np.testing.assert_allclose(file.poses(q)["tool0"], dh_tool_pose(dh, q), rtol=0, atol=2e-15)
    published = {name: pose for name, pose in file.facts["poses"].items() if "flange" in pose}
    expected = {"irb140": ["test_1", "test_3"], "irb1400": ["zero"]}
    assert list(published) == expected.get(file.name, [])
    for pose in published.values():
        T = file.poses(np.deg2rad(pose["q_deg"]))["tool0"]
        found = [*T[:3, 3], *Rotation.from_matrix(T[:3, :3]).as_quat(canonical=True, scalar_first=True)]
        np.testing.assert_allclose(found, pose["flange"], rtol=0, atol=max(pose["flange_tolerance"], 2e-15))


def test_the_parallelogram_is_of_homogeneous_solids():
    file = FILES["irb1400"]
    lever, rod = (file.body(link) for link in ("link_lever", "link_rod"))
    np.testing.assert_allclose(lever.com, [-0.085, 0, 0], rtol=0, atol=2e-17)  # half-way between the eyes
    np.testing.assert_allclose(rod.com, [0, 0, 0.300], rtol=0, atol=2e-17)
    x, y, z = 0.230**2, 0.030**2, 0.060**2
    assert relative(lever.inertia, np.diag([y + z, x + z, x + y]) * lever.mass / 12) < 1e-15
    along, across = 0.020**2 / 2, 0.020**2 / 4 + 0.600**2 / 12
    assert relative(rod.inertia, np.diag([across, across, along]) * rod.mass) < 1e-15


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


def in_urchin(file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its dependencies' own deprecations
        import urchin

        links = urchin.URDF.load(str(file.path)).link_map
    bodies = {}
    for name in file.moving:
        inertial = links[name].inertial
        R, com = inertial.origin[:3, :3], inertial.origin[:3, 3]
        bodies[name] = Body(inertial.mass, com, R @ inertial.inertia @ R.T)
    return bodies


def in_pybullet(file):
    """Link i of PyBullet hangs on joint i; the inertial frame carries the principal axes."""
    client = BulletClient(pybullet.DIRECT)
    robot = client.loadURDF(str(file.path), flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
    bodies = {}
    for j in range(client.getNumJoints(robot)):
        name = client.getJointInfo(robot, j)[12].decode()
        mass, _, moments, com, quaternion = client.getDynamicsInfo(robot, j)[:5]
        R = Rotation.from_quat(quaternion).as_matrix()
        bodies[name] = Body(mass, np.array(com), R @ np.diag(moments) @ R.T)
    client.disconnect()
    assert bodies.pop("tool0").mass == 0
    return bodies


def in_pinocchio(file):
    """Pinocchio keeps a body per moving joint, the fixed `tool0` merged into the last, and drops the base."""
    model = pin.buildModelFromUrdf(str(file.path))
    links = {joint.attrib["name"]: find(joint, "child").attrib["link"] for joint in file.joints("revolute")}
    bodies = zip(list(model.names)[1:], list(model.inertias)[1:], strict=True)
    return {links[name]: Body(body.mass, body.lever, body.inertia) for name, body in bodies}


def in_mujoco(file):
    """MuJoCo fuses the base with the world and `tool0` with the last link; quaternions are scalar first."""
    model = mujoco.MjModel.from_xml_path(str(file.path))
    bodies = {}
    for i in range(1, model.nbody):
        body = model.body(i)
        R = Rotation.from_quat(body.iquat, scalar_first=True).as_matrix()
        bodies[body.name] = Body(body.mass[0], body.ipos, R @ np.diag(body.inertia) @ R.T)
    return bodies


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("load", [in_urchin, in_pybullet, in_pinocchio, in_mujoco])
def test_loads_unchanged_with_the_same_bodies(load, name):
    file = FILES[name]
    bodies = load(file)
    assert sorted(bodies) == sorted(file.moving)
    for link, body in bodies.items():
        expected = file.body(link)
        assert relative(body.mass, expected.mass) < 1e-15, link
        assert relative(body.com, expected.com) < 1e-12, link
        assert relative(body.inertia, expected.inertia) < 1e-12, link
