"""Logs of runs, and the end of a run without an end."""

import time
from dataclasses import fields, replace

import numpy as np
import pytest

import controllers
import twin
from tests.support.sample_drives import SLOWLY, WRIST
from twin.control.closed_loop import run_closed_loop
from twin.errors import RobotError, TwinError
from twin.logs.columns import between
from twin.logs.log import JOINTS, Log, RunningLog
from twin.robot.drives.sensors import Sensors
from twin.trajectories.sampling import Samples, sample, sample_semi_implicit

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
    assert (
        back_from(replace(log, robot=replace(robot, drives=None)), tmp_path / "own.npz").robot.drives is None
    )


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
    assert not replace(log, q=q).range_excess().any()
    q[1, 0], q[2, 5] = irb140.q_min[0] - 0.1, irb140.q_max[5] + 0.2
    np.testing.assert_allclose(replace(log, q=q).range_excess(), [0.1, 0, 0, 0, 0, 0.2], atol=1e-12)


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
    back.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").stat().st_size == (tmp_path / "a.npz").stat().st_size


def test_a_log_from_before_there_were_drives(log, tmp_path):
    log.save(tmp_path / "now.npz")
    with np.load(tmp_path / "now.npz") as archive:
        old = {name: array for name, array in archive.items() if not name.startswith("drives")}
    assert not old.keys() & {"tau_joint", "q_motor", "qd_motor", "q_seen", "qd_seen"}
    np.savez(tmp_path / "old.npz", **old)
    back = Log.load(tmp_path / "old.npz")
    assert back.identical(log)
    assert back.drives == "ideal"


@SLOWLY
@pytest.mark.parametrize("mode", ["rigid", "elastic"])
def test_model_residual_finds_other_drives(irb140, mode):
    """The residuals of a long run take no time."""
    log = driven(irb140, mode)
    assert 0 <= log.model_residual() < 1e-12
    for name in ("rotor_inertia", "viscous", "coulomb", "stiffness", "damping"):
        other = replace(irb140.drives, **{name: 1.01 * getattr(irb140.drives, name)})
        found = replace(log, robot=irb140.with_drives(mode, other)).model_residual()
        assert (found > 1e-7) == (mode == "elastic" or name not in ("stiffness", "damping")), name
    assert replace(log, robot=irb140).model_residual() > 1e-3
    rows = {name: np.tile(getattr(log, name), (14, 1)) for name in JOINTS}
    long = replace(log, t=1e-3 * np.arange(14 * len(log.t)), **rows)
    assert len(long.t) > 4000
    start = time.perf_counter()
    long.model_residuals()
    assert time.perf_counter() - start < 1.0


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
