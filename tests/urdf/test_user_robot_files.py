"""A robot.toml of one's own: built from any path, with what may be left out left out."""

import re
import warnings
from decimal import Decimal
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pybullet
import pytest
from pybullet_utils.bullet_client import BulletClient
from scipy.spatial.transform import Rotation
from scipy.stats import qmc

import scenarios.templates
import twin
from tests.support.effort_rule import BEYOND_FLANGE, OFF_AXIS_6, paths_of
from tests.support.urdf_files import FILES, Body, dh_tool_pose, find, relative
from twin.errors import RobotError
from twin.trajectories.sampling import sample
from urdf import build, decimal_math, facts
from urdf.facts import read
from urdf.solids import bulk

TEMPLATE = Path(scenarios.templates.__file__).parent / "my_robot.toml"
TURNED = """coupling = [
    [-1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0],
    [0, 0, 0, -1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, -1],
]
[rating]
"""


@pytest.fixture
def arm(tmp_path):
    """A robot.toml to be changed: `arm((old, new), ...)` writes it and its URDF, and gives its path."""

    def write(*replacements, build_it=True):
        text = TEMPLATE.read_text(encoding="utf-8")
        for old, new in replacements:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path = tmp_path / "robot.toml"
        path.write_text(text, encoding="utf-8")
        if build_it:
            assert build.main([str(path)]) == 0
        return path

    return write


def without(key):
    """The replacement that takes the line of a key out."""
    line = next(line for line in TEMPLATE.read_text(encoding="utf-8").splitlines() if line.startswith(key))
    return f"{line}\n", ""


def test_a_file_anywhere_is_built_beside_itself_and_checked(arm, tmp_path, capsys):
    path, built = arm(build_it=False), tmp_path / "my_robot.urdf"
    for use in (twin.load, twin.check_model):
        with pytest.raises(
            RobotError, match=r"my_robot\.urdf beside it is missing; write it with python -m ur"
        ):
            use(path)
    assert build.main([str(path), str(tmp_path / "none.toml")]) == 2  # one that is wrong leaves all unwritten
    assert [file.name for file in tmp_path.iterdir()] == ["robot.toml"]
    capsys.readouterr()
    arm()
    assert capsys.readouterr().out == f"wrote {tmp_path / 'my_robot.urdf'}\n"
    assert twin.load(path).name == "my_robot"
    assert "python -m urdf.build robot.toml" in built.read_text(encoding="utf-8")
    assert build.main(["--check", str(path)]) == 0
    arm(("at = [0.500, 0, 0.850]", "at = [0.501, 0, 0.850]"), build_it=False)
    before = built.read_bytes()
    assert build.main(["--check", str(path)]) == 1
    assert "differs, or is missing" in capsys.readouterr().out
    assert built.read_bytes() == before
    assert build.main(["--check"]) == 0  # ours


def test_wrong_use_is_rejected_with_one_sentence(capsys):
    known = "known are irb140, irb1400, irb1600, or the path of a robot.toml"
    for word, told in (
        ("nowhere/robot.toml", "cannot read nowhere/robot.toml: No such file"),
        ("my_dh.toml", "my_dh.toml needs no URDF: load it as it is"),
        ("my_arm", f"unknown robot 'my_arm': {known}"),
        ("--chek", "unrecognized arguments: --chek"),
    ):
        assert build.main([word]) == 2
        error = capsys.readouterr().err
        assert told in error
        assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("mass = 60.0 ", "mass = 60.1 ", "mass of link_1"),
        ("at = [0.350, 0, 0.850]", "at = [0.351, 0, 0.850]", "centre of mass of link_4"),
        ("hollow_box = [0.260, 0.160, 0.180]", "hollow_box = [0.160, 0.260, 0.180]", "inertia of link_3"),
    ],
)
def test_a_urdf_of_other_bodies_is_noticed(arm, old, new, told):
    """A change of robot.toml alone; otherwise the old URDF would go on moving, whatever the file says."""
    path = arm()
    arm((old, new), build_it=False)
    with pytest.raises(RobotError, match=rf"the {told} differs from that in my_robot\.urdf; write the URDF"):
        twin.load(path)
    assert build.main([str(path)]) == 0
    assert twin.load(path).n == 6


def test_what_a_link_looks_like_follows_from_its_solid_and_torques_without_efforts_have_no_limit(
    arm, tmp_path
):
    link = facts.read(arm())["link"]["1"]
    box = {"box": [0.26, 0.2, 0.3], "at": [0.02, 0, 0.32]}
    assert link["visual"] == [{**box, "color": "orange"}]
    assert link["collision"] == [box]
    urdf = (tmp_path / "my_robot.urdf").read_text(encoding="utf-8")
    assert urdf.count("<visual>") == urdf.count("<collision>") == 7
    cad = "volume_mm3 = 1e6\ncom = [0.5, 0, 0.85]\ninertia = [1e-3, 1e-3, 1e-3, 0, 0, 0]"
    path = arm(without("solid = { hollow_box = [0.090"), ("[link.5]", f"[link.5]\n{cad}"), without("effort"))
    link = facts.read(path)["link"]["5"]
    assert link["visual"] == link["collision"] == []
    assert np.all(np.isinf(twin.load(path).tau_max))
    assert (tmp_path / "my_robot.urdf").read_text(encoding="utf-8").count('effort="0"') == 6


def test_link_masses_equal_shares_by_volume(tmp_path):
    """The IRB 140 told in the other way, its CAD's tensors scaled to the masses: the same URDF."""
    file = FILES["irb140"]
    known = facts.read(file.toml, parse_float=Decimal)
    total = sum(values["volume_mm3"] for values in known["link"].values())
    for values in known["link"].values():
        values["mass"] = known["mass"] * values.pop("volume_mm3") / total
        values["inertia"] = [x * values["mass"] / values["mass_1000"] for x in values["inertia"]]
        del values["mass_1000"], values["mass_printed"]
    del known["mass"]
    facts.check(known)
    path = tmp_path / "irb140.urdf"
    path.write_text(build.urdf(known), encoding="utf-8")
    robot, same = twin.load(path), twin.load("irb140")
    np.testing.assert_allclose(robot.tree.inertias, same.tree.inertias, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[link.4]\n", "[link.4]\nmass = 3.0\n", r"link\.4 has a mass, and so has the robot"),
        (*without("mass"), r"link\.base has no mass: expected one in every link, or the robot's"),
        ("alpha_deg = [-90, 0,", "alpha_deg = [-60, 0,", r"multiples of 90.*; a dh\.toml takes any angles"),
        ("[rating]\n", TURNED.replace("[-1, 0,", "[-1, 1,"), r"row 1 of dh\.coupling is -1 1 0 0 0 0: e"),
    ],
)
def test_what_contradicts_itself_is_refused(arm, old, new, told, capsys):
    path = arm((old, new), build_it=False)
    assert build.main([str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {path}: ")
    assert re.search(told, error), error


def test_joint_with_reversed_axis(arm):
    """Signs in the coupling: the flange of an independent product of DH matrices, at q and not at -q."""
    robot = twin.load(arm(("[rating]\n", TURNED)))
    signs = np.array([-1, 1, 1, -1, 1, -1])
    np.testing.assert_array_equal(robot.tree.axes.sum(axis=1), signs)
    dh = facts.read(TEMPLATE)["dh"]
    for q in np.random.default_rng(1).uniform(-2, 2, (20, 6)):
        T = dh_tool_pose(dh, signs * q)
        np.testing.assert_allclose(twin.forward_kinematics(robot, q), T, rtol=0, atol=2e-15)


# Four libraries load the committed URDFs unchanged, and see the bodies that the files say.


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


# The IRB 1600: hollow boxes of steel against the CAD that they stand for, and drives by their rules.


FILE = FILES["irb1600"]
STEEL = 7850.0  # kg/m^3
# Of a public STL conversion of ABB's CAD: volume in [mm^3], to 3 % (meshes not closed), centre in [m].
CAD = {
    "base": (28_826_542, (-0.10051, 0.0005, 0.06157)),
    "1": (40_104_652, (0.05059, -0.01159, 0.34288)),
    "2": (10_403_724, (0.15022, -0.18273, 0.79059)),
    "3": (16_338_996, (0.17078, 0.01843, 1.17353)),
    "4": (2_992_383, (0.62486, -0.00064, 1.18663)),
    "5": (181_204, (0.75, 0, 1.1865)),
    "6": (32_051, (0.79732, 0, 1.18712)),
}


@pytest.fixture(scope="module")
def bulks():
    with decimal_math.precisely():
        return {link: bulk(values) for link, values in read(FILE.toml, Decimal)["link"].items()}


@pytest.fixture(scope="module")
def median_inertia(irb1600):
    """The diagonal of the mass matrix (6,) with the rated payload, its median over the ranges."""
    payload = twin.Payload(irb1600.rating.payload, (OFF_AXIS_6, 0, BEYOND_FLANGE))
    evenly = qmc.Sobol(6, scramble=False).random_base2(16)  # of random samples the median scatters by 1 %
    q = qmc.scale(evenly, irb1600.q_min, irb1600.q_max)
    M = twin.mass_matrix(irb1600.with_payload(payload), q)
    return np.median(np.diagonal(M, axis1=1, axis2=2), axis=0)


def masses():
    return {link: FILE.body("base_link" if link == "base" else f"link_{link}").mass for link in CAD}


def test_walls_of_steel_make_up_the_mass(bulks):
    """One wall; at the density of steel it weighs what the data sheet says, to a tenth of a percent."""
    assert {values["solid"]["wall"] for values in FILE.facts["link"].values()} == {0.00858}
    volumes = {link: float(spread.volume) for link, spread in bulks.items()}
    assert STEEL * sum(volumes.values()) == pytest.approx(249.94, abs=5e-3)
    assert sum(masses().values()) == pytest.approx(250, abs=1e-12)
    densities = [masses()[link] / volume for link, volume in volumes.items()]
    np.testing.assert_allclose(densities, 250 / sum(volumes.values()), rtol=1e-15)


def test_masses_and_centres_are_near_those_of_the_cad(bulks):
    """As the file says; centres differ by 59 mm at most (base and column), those of the arms by 49."""
    told = {"base": 66, "1": 91, "2": 38, "3": 41, "4": 11.5, "5": 1.5, "6": 0.9}
    by_cad = {"base": 73, "1": 101, "2": 26, "3": 41, "4": 7.6, "5": 0.5, "6": 0.1}
    total = sum(volume for volume, _ in CAD.values())
    for link, (volume, com) in CAD.items():
        for mass, stated in ((masses()[link], told[link]), (250 * volume / total, by_cad[link])):
            assert abs(mass - stated) <= (1 if stated > 12 else 0.1) / 2, link
        distance = np.linalg.norm(np.array(bulks[link].com, float) - com)
        assert distance < (0.059 if link in ("base", "1") else 0.049), link


def test_effort_is_what_the_motors_give_and_carries_the_payload_along_every_scenario(irb1600):
    assert irb1600.tau_max.tolist() == irb1600.drives.torque_max.tolist() == [600, 1000, 500, 36, 36, 20]
    ratio = np.max(np.abs(irb1600.drives.ratio) * irb1600.qd_max / irb1600.drives.motor_speed_max)
    assert 0.95 < ratio < 1  # the motors reach the joints' speed limits
    dh = irb1600.dh
    assert dh.a[0] + dh.a[1] + dh.d[3] == pytest.approx(irb1600.rating.reach, abs=1e-15)
    loaded = irb1600.with_payload(twin.Payload(irb1600.rating.payload, (0, 0, BEYOND_FLANGE)))
    for path in paths_of(irb1600):
        samples = sample(path, 1e-3)
        tau = twin.inverse_dynamics(loaded, samples.q, samples.qd, samples.qdd)
        assert np.all(np.max(np.abs(tau), axis=0) < 0.9 * irb1600.tau_max)


def test_friction_and_stiffness_follow_their_rules(irb1600):
    """To the rounding of two digits, of three for the stiffness."""
    drives, limit = irb1600.drives, irb1600.tau_max
    rules = (slice(0, 3), 0.045, 1.5, 0.10, 115), (slice(3, 6), 0.09, 2.0, 0.15, 200)
    for part, coulomb, static, viscous, stiffness in rules:
        np.testing.assert_allclose(drives.coulomb[part], coulomb * limit[part], rtol=0.025)
        np.testing.assert_allclose(drives.static[part], static * coulomb * limit[part], rtol=0.025)
        at_speed = drives.viscous[part] * irb1600.qd_max[part]
        np.testing.assert_allclose(at_speed, viscous * limit[part], rtol=0.035)
        np.testing.assert_allclose(drives.stiffness[part], stiffness * limit[part], rtol=1e-12)


def test_rotors_are_half_of_the_link_inertia_and_damping_a_twentieth_of_critical(irb1600, median_inertia):
    """Of rotor against arm: 2 zeta sqrt(k J A / (J + A)), with A the arm's inertia; to three digits."""
    drives = irb1600.drives
    J = np.diagonal(drives.reflected_inertia)
    np.testing.assert_allclose(J, 0.5 * median_inertia, rtol=0.003)  # the lecture says 50 to 100 %
    reduced = J * median_inertia / (J + median_inertia)
    expected = 2 * 0.05 * np.sqrt(drives.stiffness * reduced)
    np.testing.assert_allclose(drives.damping, expected, rtol=0.02)
