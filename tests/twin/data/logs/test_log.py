"""Logs of runs and their files, and the end of a run without an end.

A file that somebody altered is a log that can be, or one sentence; nothing is run, nothing is set aside.
"""

import copy
import io
import os
import pickle
import tracemalloc
import zipfile
from dataclasses import fields, replace
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

import controllers
import twin
from tests.support.example_logs import made_up_log
from tests.support.sample_drives import SLOWLY, WRIST
from twin import Sensors, run_closed_loop
from twin.base.errors import RobotError, TwinError
from twin.data.logs.archive import robot_from_record, robot_to_record
from twin.data.logs.columns import between
from twin.data.logs.log import ARRAYS, STANDS_FOR, Log, RunningLog
from twin.physics.robot import DH, LinkBody
from twin.physics.trajectories.sampling import Samples, sample, sample_semi_implicit

BODY = twin.Payload(6.0, [0.01, 0.02, 0.08], np.diag([0.03, 0.02, 0.01]))


def run(robot, duration=1.0):
    """A turn of the wrist, so that the quaternion of the flange changes sheet."""
    motion = twin.sines(np.zeros(6), [0.1, 0.1, 0.1, 0.3, 0.2, 6.0], np.full(6, 0.25), duration)
    return run_closed_loop(
        twin.AnalyticPlant(robot), lambda state, _: twin.gravity_torque(robot, state.q), sample(motion, 1e-3)
    )


@pytest.fixture(scope="module")
def log(irb140):
    return run(irb140.with_payload(BODY).mounted("wall"))


def back_from(log, path):
    """Return a log that was saved and loaded."""
    log.save(path)
    return Log.load(path)


def test_every_field_comes_back_bit_by_bit(log, tmp_path):
    own = np.array([[1.0, np.nan], [-0.0, 2.0]])
    tool = twin.pose_matrix([0.1, 0.0, 0.2, 0.0, 1.0, 0.0, 0.0])
    log = replace(log, arrays={"mine": own}, T_flange_tool=tool)
    back = back_from(log, tmp_path / "run.log")  # the name is kept as it is
    assert log.identical(back)
    at = twin.forward_kinematics(log.robot, log.q, tool)[:, :3, 3]
    np.testing.assert_allclose(log.pose[:, :3], at, rtol=0, atol=1e-15)
    for name in ("pose", "pose_ref"):
        assert getattr(log, name).tobytes() == getattr(back, name).tobytes()
    assert back.arrays["mine"].tobytes() == own.tobytes()
    assert (back.controller, back.time_step, back.steps_per_period) == ("<lambda>", 1e-3, 1)
    assert isinstance(back.steps_per_period, int)
    assert back.model_residual() == log.model_residual()


def test_the_robot_comes_back_with_payload_and_mounting(log, tmp_path):
    robot = back_from(log, tmp_path / "run.npz").robot
    assert robot.name == "irb140"
    np.testing.assert_array_equal(robot.gravity, log.robot.gravity)
    np.testing.assert_array_equal(robot.tree.inertias, log.robot.tree.inertias)
    for name in ("mass", "com", "inertia"):
        np.testing.assert_array_equal(getattr(robot.payload, name), getattr(BODY, name))
    urdf = tmp_path / "mine.urdf"
    urdf.write_text(robot.urdf.read_text())
    assert back_from(replace(log, robot=twin.load(urdf)), tmp_path / "own.npz").robot.urdf == urdf
    driveless = replace(log, robot=replace(robot, drives=None))
    assert back_from(driveless, tmp_path / "own.npz").robot.drives is None


def test_a_change_in_one_field_is_a_difference(log):
    """A change of the last bit of a number counts."""
    changed = {"controller": "other", "time_step": 2e-3, "arrays": {"more": np.zeros(2)}}
    for name in (field.name for field in fields(log) if isinstance(getattr(log, field.name), np.ndarray)):
        changed[name] = getattr(log, name).copy()
        last = changed[name][..., -1:]
        last[...] = ~last if last.dtype == bool else np.nextafter(last, 9)
    assert len(changed) > 15
    for name, value in changed.items():
        assert not log.identical(replace(log, **{name: value})), name


def test_leaving_the_range_shows(log, irb140):
    q = np.zeros((3, 6))
    assert not replace(log, q=q, qd=0.0 * q).violations()
    q[1, 0], q[2, 5] = irb140.q_min[0] - 0.1, irb140.q_max[5] + 0.2
    (worst,) = replace(log, q=q, qd=0.0 * q).violations()
    assert (worst.quantity, worst.joint, worst.t) == ("position", "joint_6", log.t[2])
    assert worst.value - worst.limit == pytest.approx(0.2, abs=1e-12)


def test_poses_are_the_flange_s_and_continuous(log):
    for pose, q in ((log.pose, log.q), (log.pose_ref, log.q_ref)):
        np.testing.assert_allclose(twin.pose_matrix(pose), twin.forward_kinematics(log.robot, q), atol=1e-14)
        assert np.all(np.sum(pose[1:, 3:] * pose[:-1, 3:], axis=1) > 0)
    assert log.pose_ref[:, 3].min() < 0, "the wrist turned far enough for the sign to matter"


def test_model_residual_is_round_off_and_finds_another_model(log, irb140):
    assert 0 <= log.model_residual() < 1e-12
    assert replace(log, robot=irb140.with_payload(BODY)).model_residual() > 1e-3
    assert replace(log, steps_per_period=2).model_residual() > 1e-3, "it was one step"


def driven(robot, mode, drives=None, steps=2):
    """A swing of an arm whose drives are as given, under an impatient controller, with late measurements."""
    plant = twin.AnalyticPlant(robot.with_drives(mode, drives), 1e-3 / steps)
    reference = sample(twin.sines(np.full(6, 0.1), np.full(6, 0.2), np.full(6, 1.5), 0.3), 1e-3)

    def controller(state, wanted):
        pull = 400.0 * (wanted.q - state.q) + 40.0 * (wanted.qd - state.qd)
        return twin.inverse_dynamics(robot, state.q, state.qd, pull)

    return run_closed_loop(plant, controller, reference, steps_per_period=steps, sensors=Sensors(delay=1))


def test_the_two_poses_begin_on_the_same_sheet(irb140):
    """Rotations on either side of a half turn have quaternions that a >= 0 would set apart."""
    q = np.array([0, 0, 0, 0, 0, np.pi])
    start = (q + 1e-3, np.zeros(6))
    wanted = sample(twin.hold(q - 1e-3, 0.005), 1e-3)
    log = run_closed_loop(twin.AnalyticPlant(irb140), lambda *_: np.zeros(6), wanted, start=start)
    assert np.max(np.abs(log.pose - log.pose_ref)) < 0.01


def test_files_that_are_no_log(tmp_path):
    for name, content in (("text", b"t,x,y"), ("empty", b""), ("zip", b"PK\x05\x06" + bytes(18))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TwinError, match=f"{name} is not a log"):
            Log.load(tmp_path / name)
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(TwinError, match=r"array\.npy is not a log .* \(it contains a single array\)"):
        Log.load(tmp_path / "array.npy")
    with pytest.raises(TwinError, match=r"cannot read the log .*nowhere: No such file"):
        Log.load(tmp_path / "nowhere")


@SLOWLY
@pytest.mark.parametrize(("mode", "own"), [("ideal", False), ("rigid", True), ("elastic", True)])
def test_drives_come_back_bit_by_bit(irb1400, mode, own, tmp_path):
    drives = irb1400.drives
    if own:
        drives = replace(drives, coulomb=drives.coulomb / 3, stiffness=[np.inf, *drives.stiffness[1:]])
    log = driven(irb1400, mode, drives)
    back = back_from(log, tmp_path / "a.npz")
    assert log.identical(back)
    assert back.drives == back.robot.drive_mode == mode
    for item in fields(drives):
        np.testing.assert_array_equal(getattr(back.robot.drives, item.name), getattr(drives, item.name))
    assert back.model_residual() == log.model_residual() <= 1e-12
    for a, b in (("tau_joint", "tau"), ("q_motor", "q"), ("qd_motor", "qd"), ("q_seen", "q_motor")):
        assert (getattr(back, a) is getattr(back, b)) == (getattr(log, a) is getattr(log, b))


@SLOWLY
@pytest.mark.parametrize("mode", ["rigid", "elastic"])
def test_model_residual_finds_other_drives(irb140, mode):
    log = driven(irb140, mode)
    assert 0 <= log.model_residual() < 1e-12
    for name in ("rotor_inertia", "viscous", "coulomb", "stiffness", "damping"):
        other = replace(irb140.drives, **{name: 1.01 * getattr(irb140.drives, name)})
        found = replace(log, robot=irb140.with_drives(mode, other)).model_residual()
        assert (found > 1e-7) == (mode == "elastic" or name not in ("stiffness", "damping")), name
    assert replace(log, robot=irb140).model_residual() > 1e-3


def test_the_torque_of_a_motor(irb1400):
    """Power is the same at the motors as at the joints, coupled or not."""
    drives = replace(irb1400.drives, coupling=WRIST)
    log = driven(irb1400, "rigid", drives)
    power = np.sum(log.tau_motor * (log.qd @ drives.motor_matrix.T), axis=1)
    np.testing.assert_allclose(power, np.sum(log.tau * log.qd, axis=1), rtol=0, atol=1e-12 * power.max())
    np.testing.assert_allclose(log.tau_motor[:, 0], log.tau[:, 0] / drives.ratio[0], rtol=1e-14)
    without = replace(log, robot=replace(irb1400, drives=None, drive_mode="ideal"))
    with pytest.raises(RobotError, match="'irb1400' has no drives, so the torques of its motors are not"):
        _ = without.tau_motor


@pytest.mark.parametrize("drives", ["ideal", "elastic"])
def test_it_is_the_end_of_the_whole(robot, drives):
    """Parts of any length, one of them longer than what is kept; arrays that stand for others still do."""
    motion = twin.sines(np.full(6, 0.1), np.full(6, 0.3), np.full(6, 0.5), 0.1)
    whole = Samples(*(series[:90] for series in sample_semi_implicit(motion, 1e-3)))
    law = controllers.make("pd", robot)
    plant = robot.with_drives(drives)
    with twin.Simulation(plant) as simulation:
        once = run_closed_loop(simulation, law, whole)
        for kept in (200, 33, 10):
            running = RunningLog(kept)
            assert running.log(np.eye(4), {}) is None
            simulation.reset(whole.q[0], whole.qd[0])
            for part in (slice(0, 1), slice(1, 40), slice(40, 44), slice(44, 90)):
                samples = Samples(*(series[part] for series in whole))
                running.add(run_closed_loop(simulation, law, samples, part=True))
            tail = running.log(np.eye(4), {"own": np.arange(3)})
            end = between(once, start=float(once.t[max(0, 90 - kept)]))
            assert list(tail.arrays) == ["own"]
            tail.require_consistent()
            for name in ("t", "q_ref", "q", "qd", "tau", "saturated", "q_motor", "q_seen"):
                assert getattr(tail, name).tobytes() == getattr(end, name).tobytes(), name
            assert (tail.q_motor is tail.q) == (drives == "ideal")
            assert tail.q_seen is tail.q_motor
    running.restart()
    assert running.log(np.eye(4), {}) is None
    with pytest.raises(ValueError, match="at least 1 sample, got 0"):
        RunningLog(0)


@pytest.fixture(scope="module")
def made_up():
    """With motors that are not where the joints are, and are not seen as they are."""
    made_up = made_up_log("pd")
    own = {name: getattr(made_up, name) + 1.0 for name in STANDS_FOR}
    return replace(made_up, **own, arrays={"mine": np.arange(3.0)})


def content_of(made_up, path):
    """Return the contents of the archive of a log."""
    made_up.save(path)
    with np.load(path) as archive:
        return dict(archive)


@pytest.fixture(scope="module")
def content(made_up, tmp_path_factory):
    return content_of(made_up, tmp_path_factory.mktemp("log") / "a.npz")


def altered(tmp_path, content, **changes):
    """The path of an archive with some of its arrays replaced, or left out where they are `None`."""
    arrays = {name: array for name, array in (content | changes).items() if array is not None}
    np.savez(tmp_path / "a.npz", **arrays)
    return tmp_path / "a.npz"


def refused(path):
    with pytest.raises(TwinError) as error:
        Log.load(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    return str(error.value)


FORMS = [
    lambda a: a[:-1],
    lambda a: a[..., None],
    lambda a: a.astype(object),
    lambda a: a.astype(">f8" if a.dtype == float else ">i2"),
    lambda a: np.array("text"),
]


def test_an_array_that_is_not_there_or_of_another_form_is_refused(content, tmp_path):
    """Files from before there were drives lack those of the motors."""
    for name in ARRAYS:
        for alter in FORMS if name in ("q", "saturated") else FORMS[:1]:
            refused(altered(tmp_path, content, **{name: alter(content[name])}))
        path = altered(tmp_path, content, **{name: None})
        if name == "T_flange_tool":  # nor was there a tool
            np.testing.assert_array_equal(Log.load(path).T_flange_tool, np.eye(4))
        elif name not in STANDS_FOR:
            assert refused(path).endswith(f"(it has no '{name}')")
        else:
            back = Log.load(path)
            assert getattr(back, name) is getattr(back, STANDS_FOR[name])


NO_PAYLOAD = {"payload_mass": np.array(-1.0), "payload_com": np.zeros(3), "payload_inertia": np.eye(3)}


WRONG = (
    ({"time_step": np.array(np.nan)}, "a time step above 0 s"),
    ({"time_step": np.array(2e-3)}, "steps of the control period, 0.002 s"),
    ({"steps_per_period": np.array(0)}, "at least 1 step per period"),
    ({"t": np.zeros(50)}, "expected t to have at least one sample and to increase"),
    ({"robot": np.array("irb1600"), "q": np.zeros((50, 8))}, r"of shape (50, 6), got"),
    ({"inertias": np.full((6, 10), np.inf)}, "expected finite inertias"),
    ({"base_inertia": np.r_[-1.0, np.zeros(9)]}, "no body has the inertia of link 'base': -1 kg"),
    ({"payload_mass": np.array(1.0)}, "it has no 'payload_com'"),
    (NO_PAYLOAD, "-1.0"),
    ({"drives_ratio": np.zeros(6)}, "drives: ratio of axis 1 is 0, expected a finite number"),
    ({"drives_friction_at": np.zeros(6)}, "expected drives_friction_at to be text of 1 axes"),
    ({"drives_stiffness": None}, "it has no 'drives_stiffness'"),
)


def test_what_cannot_be_of_one_run_is_refused(content, tmp_path):
    for changes, told in WRONG:
        assert told in refused(altered(tmp_path, content, **changes))


def test_a_table_that_was_altered_is_refused(tmp_path):
    bodies = [LinkBody(1.0, (0.1, 0, 0.1), np.eye(3))] * 6
    robot = twin.dh_robot("own", DH(*np.zeros((4, 6))), bodies=bodies)
    content = content_of(replace(made_up_log("pd"), robot=robot), tmp_path / "own.npz")
    assert Log.load(tmp_path / "own.npz").robot.name == "own"
    kinds, ends = np.array(["round"] * 6), np.full(6, np.nan)
    for change in ({"joint_names": ends}, {"dh_kinds": kinds}, {"dh_a": np.zeros(5)}, {"q_min": ends}):
        refused(altered(tmp_path, content, **change))


class Spy:
    """Object that records that it was unpickled."""

    ran = False

    def __setstate__(self, state):
        Spy.ran = True


def test_nothing_is_unpickled(content, tmp_path):
    spy = Spy()
    spy.something = 1
    told = refused(altered(tmp_path, content, own_spy=np.array([spy], dtype=object)))
    assert "contains object" in told
    assert not Spy.ran


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_array_larger_than_the_file_is_never_set_aside(compression, content, tmp_path):
    stream, form = io.BytesIO(), {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(stream, form)
    path = altered(tmp_path, content)
    with zipfile.ZipFile(path, "a", compression) as archive:
        archive.writestr("own_bomb.npy", stream.getvalue() + bytes(10**7) * (compression != 0))
    tracemalloc.start()
    told = refused(path)
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()
    assert "larger than the file" in told or "declares shape (1000000000000,)" in told


def test_damage_anywhere_is_one_sentence_or_none(content, tmp_path):
    """Bytes changed and cut off: the check sums of the archive, its headers and its directory."""
    whole = altered(tmp_path, content).read_bytes()
    rng, path, accepted = np.random.default_rng(17), tmp_path / "b.npz", 0
    for _ in range(80):
        data = bytearray(whole[: rng.integers(len(whole))] if rng.random() < 0.3 else whole)
        for place in rng.integers(len(data), size=rng.integers(1, 4)) if data else ():
            data[place] = rng.integers(256)
        path.write_bytes(data)
        try:
            Log.load(path)
            accepted += 1
        except TwinError as error:
            assert "\n" not in str(error)  # noqa: PT017
    assert accepted < 27  # a change may be in what nobody reads, as the date of a member


def test_a_name_of_a_table_gets_a_table(made_up, tmp_path):
    made_up.save(tmp_path / "a.CSV")
    assert (tmp_path / "a.CSV").read_text(encoding="utf-8").startswith("t_s,")
    made_up.save(tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").read_bytes()[:4] == b"PAR1"


def test_a_log_that_could_not_be_loaded_is_not_saved(made_up, tmp_path):
    for changes in ({"q": np.zeros((3, 6))}, {"arrays": {"mine": np.array([{}])}}, {"arrays": {"mine": 3.0}}):
        with pytest.raises(TwinError, match=r"expected (q|mine) to be"):
            replace(made_up, **changes).save(tmp_path / "a.npz")
    os.mkfifo(tmp_path / "pipe")
    assert "it is not a regular file" in refused(tmp_path / "pipe")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_log_can_be_copied_and_pickled(made_up):
    """The robot is not what is looked at here.  The arrays that a scenario adds cannot be changed later."""
    added = {"mine": np.arange(3.0)}
    made_up = replace(made_up, robot=SimpleNamespace(name="stub"), arrays=added)
    added["more"] = np.zeros(1)
    object.__setattr__(made_up, "_poses", (np.zeros((50, 7)), np.ones((50, 7))))
    for again in (copy.deepcopy(made_up), pickle.loads(pickle.dumps(made_up))):
        assert again is not made_up
        assert again.identical(made_up)
        assert set(again.arrays) == {"mine"}
        assert isinstance(again.arrays, MappingProxyType)


def test_logs_from_before_there_were_drives_or_further_friction_have_none(irb140, content, tmp_path):
    without = [name for name in content if name.startswith("drives")]
    assert Log.load(altered(tmp_path, content, **dict.fromkeys([*without, *STANDS_FOR]))).drives == "ideal"
    content = robot_to_record(irb140.with_drives("rigid"))
    written = {name: np.asarray(value) for name, value in content.items()}
    later = ("coulomb_per_load", "viscous_root", "viscous_difference", "offset")
    for name in ("axis_torques", *(f"drives_{part}" for part in later)):
        del written[name]
    drives = robot_from_record(written).drives
    np.testing.assert_array_equal(drives.offset, np.zeros(6))
    np.testing.assert_array_equal(drives.coulomb, irb140.drives.coulomb)
    del written["drives_coulomb"]
    with pytest.raises(KeyError, match="drives_coulomb"):
        robot_from_record(written)
