"""Faults in the table [drives] of a robot file raise an error of one sentence that names the file."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.refusals import edits_refused
from twin.base.errors import DriveWarning, RobotError, UnknownNameError
from twin.physics.robot import loading
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.loading import robot_facts
from twin.physics.robot.model_check import check_model
from urdf import build

RATIO = "ratio = [100, 100, 80, 60, 60, 40]"
TORQUE = "motor_torque_max = [3.0, 7.6, 4.2, 0.75, 1.0, 1.0]"
SOURCES = "[drives.source]"

INERTIA = "rotor_inertia = [0.00018, 0.0002"
FIRST = "[1, 0, 0, 0, 0, 0],\n    [0, 1, 0, 0, 0, 0],"
WRIST = "    [0, 0, 0, -0.045, 0.4995, 1],"
TOLD = 'encoder_counts = """our estimate: a resolver read to 13 bits"""'
SINGULAR = "[1, 1, 0, 0, 0, 0],\n    [1, 1, 0, 0, 0, 0],"

# Of each malformed table: text to replace, its replacement, and what the one sentence says.
MALFORMED = [
    ("ratio = [100, 100", "ratio = [inf, 100", "drives.ratio: expected finite numbers, got inf"),
    (INERTIA, "# [", "table [drives] lacks the key 'rotor_inertia'"),
    (RATIO, RATIO.replace(", 40", ""), "drives.ratio: expected 6 numbers, got 5"),
    ("42, 26, 15", "42, 26, 3", "static of axis 4 is 3, expected at least the Coulomb friction of 7.4 N m"),
    ("stiffness = [34000.0", "stiffness = [nan", "drives.stiffness: expected numbers"),
    (FIRST, SINGULAR, "coupling is singular"),
    (WRIST, WRIST.replace(" 1]", " 2]"), "expected coupling with 1 on its diagonal"),
    (WRIST, "", "drives.coupling: expected 6 rows of 6 numbers"),
    (SOURCES, f'{SOURCES}\nbacklash = "x"', "table [drives.source] has a key 'backlash', which"),
    (TOLD, TOLD.replace("_counts", "s"), "lacks the key 'encoder_counts': where is it from?"),
    (TOLD, 'encoder_counts = " "', "drives.source.encoder_counts: expected a text, got ' '"),
]
FRICTION_AT = [
    (RATIO, f"{RATIO}\nfriction_at = {['x'] * 6}", "friction_at of axis 1 is 'x', expected motor or joint"),
    (RATIO, f'{RATIO}\nfriction_at = ["motor"]', "expected friction_at of 6 axes, got 1"),
]


@pytest.fixture
def file(tmp_path):
    """Return the path of a copy of the IRB 140's file, with the URDF beside it, for tests to modify."""
    for name in ("robot.toml", "irb140.urdf"):
        (tmp_path / name).write_bytes((build.HERE / "irb140" / name).read_bytes())
    return tmp_path / "robot.toml"


def test_a_malformed_table_is_rejected_in_one_sentence(file):
    text = file.read_text(encoding="utf-8")
    edits_refused(file, text, MALFORMED, twin.load, RobotError)
    with pytest.raises(RobotError, match=f"^{file}: "):
        twin.load(file)
    sourced = text.replace(SOURCES, f'{SOURCES}\nfriction_at = "a test"')
    edits_refused(file, sourced, FRICTION_AT, twin.load, RobotError)


def test_omitted_keys_take_their_neutral_values(file):
    text = file.read_text(encoding="utf-8")
    head, _, rest = text.partition("[drives]")
    tail = rest[rest.index("[poses.zero]") :]
    told = f'{SOURCES}\nratio = "x"\nrotor_inertia = "x"\n'
    table = f"[drives]\n{RATIO}\nrotor_inertia = [0, 0, 0, 0, 0, 0]\n{told}"
    file.write_text(head + table + tail, encoding="utf-8")
    drives = twin.load(file).drives
    for name in ("coulomb", "static", "viscous", "stribeck_speed", "damping", "encoder_counts"):
        np.testing.assert_array_equal(getattr(drives, name), np.zeros(6))
    for name in ("stiffness", "motor_torque_max", "motor_speed_max", "motor_speed_rated"):
        np.testing.assert_array_equal(getattr(drives, name), np.full(6, np.inf))
    assert drives.friction_at == ("motor",) * 6
    np.testing.assert_array_equal(drives.coupling, np.eye(6))
    file.write_text(head + tail, encoding="utf-8")
    robot = twin.load(file)
    assert robot.drives is None
    with pytest.raises(RobotError, match=r"robot 'irb140' cannot have rigid drives, because its file has no"):
        robot.with_drives("rigid")
    assert robot.with_drives("ideal").drive_mode == "ideal"
    drives = Drives([1.0, 2.0], 0.0, coulomb=[3.0, 4.0], motor_speed_max=5.0)
    np.testing.assert_array_equal(drives.static, drives.coulomb)
    np.testing.assert_array_equal(drives.motor_speed_rated, [5.0, 5.0])


IMPOSSIBLE = {
    "ratio": 0, "rotor_inertia": -1, "motor_torque_max": 0, "motor_speed_max": -1, "motor_speed_rated": 0,
    "encoder_counts": -1, "coulomb": np.inf, "static": -1, "stribeck_speed": -1, "viscous": -1,
    "damping": -1, "stiffness": 0, "coulomb_per_load": 1, "viscous_root": -1, "viscous_difference": 1,
    "offset": np.inf,
}  # fmt: skip
GIVEN = {"ratio": [100.0, -50.0], "rotor_inertia": 1e-4}


def test_each_number_of_a_drive_has_its_range():
    for name, bad in IMPOSSIBLE.items():
        with pytest.raises(ValueError, match=f"drives: {name} of axis 1 is {bad:g}, expected"):
            Drives(**GIVEN | {name: [bad, bad]})


def test_drives_created_in_a_program_are_checked():
    for given, message in (
        ({"ratio": [[1.0]]}, r"expected ratio of shape \(1,\), got \(1, 1\)"),
        ({"ratio": ["x"]}, "ratio of the drives"),
        ({"rotor_inertia": [1.0, 1.0, 1.0]}, r"expected rotor_inertia of shape \(2,\), got \(3,\)"),
        ({"viscous": np.nan}, r"expected viscous without NaN"),
        ({"coupling": 1.0}, r"expected coupling of shape \(2, 2\), got \(\)"),
        ({"motor_speed_max": 3.0, "motor_speed_rated": 4.0}, "above 0 rad/s and at most motor_speed_max"),
        ({"friction_at": ["joint", 3]}, "friction_at of axis 2 is 3, expected motor or joint"),
    ):
        with pytest.raises(ValueError, match=message):
            Drives(**GIVEN | given)


def test_friction_on_shafts_that_do_not_turn_independently_is_rejected():
    coupling = [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    Drives([1, 1, 1], 0.0, coupling=coupling)
    with pytest.raises(ValueError, match="the shafts with friction, by coupling"):
        Drives([1, 1, 1], 0.0, coupling=coupling, friction_at=["motor", "motor", "joint"])


def test_drives_of_another_robot_are_rejected(irb140):
    with pytest.raises(UnknownNameError, match="unknown drives 'soft': known are ideal, rigid, elastic"):
        irb140.with_drives("soft")
    with pytest.raises(RobotError, match="robot 'irb140' has 6 joints, got drives for 2"):
        irb140.with_drives("rigid", Drives([1.0, 1.0], 0.0))
    with pytest.raises(RobotError, match="robot 'rx90' has no dynamics"):
        twin.load("rx90").with_drives("rigid", Drives(np.ones(6), 0.0))


def test_weak_motor_is_reported_once_by_load_and_check_model(file):
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(TORQUE, TORQUE.replace("7.6", "0.5")), encoding="utf-8")
    said = r"'irb140': the motor of axis 2 gives 50 N m at the joint, but .* requires 121\.\d N m"
    with pytest.warns(DriveWarning, match=said) as told:
        twin.load(file)
    assert len(told) == 1
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        findings = check_model(file).findings
    assert [f.severity for f in findings if "motor of axis 2 gives 50 N m" in f.text] == ["warning"]


def test_holding_torques_are_close_to_the_worst_case_and_include_the_coupling(irb140, rng):
    q = rng.uniform(irb140.q_min, irb140.q_max, (20000, 6))
    worst = np.max(np.abs(twin.gravity_torque(irb140, q)), axis=0)[1:5]
    found = np.max(np.abs(loading._holding_torques(irb140)), axis=0)[1:5]
    np.testing.assert_array_less(0.9 * worst, found)
    just = Drives(np.ones(6), 0.0, motor_torque_max=np.maximum(worst[0] * 1.01, 1.0))
    assert not loading.weak_motors(irb140.with_drives("ideal", just))
    coupling = np.eye(6)
    coupling[2, 1] = -0.5  # joint 3 adds to the load that motor 2 holds
    together = replace(just, coupling=coupling)
    q = loading._poses(irb140)
    held = np.linalg.solve(coupling.T, twin.gravity_torque(irb140, q).T)
    beyond = np.max(np.abs(held), axis=1) > just.torque_max
    assert beyond.tolist() == [False, True, False, False, False, False]
    (told,) = loading.weak_motors(irb140.with_drives("ideal", together))
    assert "motor of axis 2 gives" in told


def test_motors_hold_the_arm_and_exceed_the_speed_limits_as_stated_in_the_files():
    for name in loading.laboratory_names():
        assert loading.weak_motors(twin.load(name)) == []
    for name in loading.robot_names():
        robot = twin.load(name)
        assert loading.weak_motors(robot) == []
        asked = np.abs(np.diag(robot.drives.motor_matrix)) * robot.qd_max
        above = 100.0 * (robot.drives.motor_speed_max / asked - 1.0)
        assert np.min(above) > 0
        said = robot_facts(robot.file)["drives"]["source"]["motor_speed_max"]
        assert f"{np.min(above):.0f} " in said, name
        assert f"to {np.max(above):.0f} % above" in said, name
