from dataclasses import fields, replace

import numpy as np
import pytest

import twin
from twin.control.analytic_plant import AnalyticPlant
from twin.control.closed_loop import run_closed_loop
from twin.control.log import Log
from twin.dynamics.equation_of_motion import gravity_torque
from twin.errors import TwinError
from twin.kinematics.forward import forward_kinematics
from twin.robot.robot import Payload
from twin.spatial.rotations import pose_matrix
from twin.trajectories.joint_trajectories import hold, sines
from twin.trajectories.sampling import sample

BODY = Payload(6.0, [0.01, 0.02, 0.08], np.diag([0.03, 0.02, 0.01]))


def run(robot):
    """A turn of the wrist, so that the quaternion of the flange changes sheet."""
    reference = sample(sines(np.zeros(6), [0.1, 0.1, 0.1, 0.3, 0.2, 6.0], np.full(6, 0.25), 1.0), 1e-3)
    return run_closed_loop(AnalyticPlant(robot), lambda state, _: gravity_torque(robot, state.q), reference)


@pytest.fixture(scope="module")
def log(irb140):
    return run(irb140.with_payload(BODY).mounted("wall"))


def arrays(log):
    names = [*(field.name for field in fields(log)), "pose", "pose_ref"]
    return {name: getattr(log, name) for name in names if isinstance(getattr(log, name), np.ndarray)}


def test_every_field_comes_back_bit_by_bit(log, tmp_path):
    path = tmp_path / "run.log"  # the name is kept as it is
    own = np.array([[1.0, np.nan], [-0.0, 2.0]])
    log = replace(log, arrays={"mine": own})
    log.save(path)
    back = Log.load(path)
    assert log.identical(back)
    assert len(arrays(log)) == 17
    for name, array in arrays(log).items():
        assert array.dtype == arrays(back)[name].dtype
        assert array.tobytes() == arrays(back)[name].tobytes()
    assert back.arrays["mine"].tobytes() == own.tobytes()
    assert (back.controller, back.time_step, back.steps_per_period) == ("<lambda>", 1e-3, 1)
    assert isinstance(back.steps_per_period, int)
    assert back.model_residual() == log.model_residual()


def test_the_robot_comes_back_with_payload_and_mounting(log, tmp_path):
    log.save(tmp_path / "run.npz")
    robot = Log.load(tmp_path / "run.npz").robot
    assert robot.name == "irb140"
    np.testing.assert_array_equal(robot.gravity, log.robot.gravity)
    np.testing.assert_array_equal(robot.tree.inertias, log.robot.tree.inertias)
    for name in ("mass", "com", "inertia"):
        np.testing.assert_array_equal(getattr(robot.payload, name), getattr(BODY, name))


def test_a_robot_of_one_s_own_is_found_again_by_its_file(irb140, tmp_path):
    urdf = tmp_path / "mine.urdf"
    urdf.write_text(irb140.urdf.read_text())
    run(twin.load(urdf)).save(tmp_path / "run.npz")
    assert Log.load(tmp_path / "run.npz").robot.urdf == urdf


@pytest.mark.parametrize("name", ["q", "tau", "saturated", "qd_ref", "controller", "time_step", "arrays"])
def test_a_change_in_one_field_is_a_difference(log, name):
    value = getattr(log, name)
    if isinstance(value, np.ndarray):
        value = value.copy()
        value[-1, -1] = ~value[-1, -1] if value.dtype == bool else np.nextafter(value[-1, -1], 9)
    else:
        value = {"controller": "other", "time_step": 2e-3, "arrays": {"more": np.zeros(2)}}[name]
    assert not log.identical(replace(log, **{name: value}))


def test_poses_are_the_flange_s_and_continuous(log):
    for pose, q in ((log.pose, log.q), (log.pose_ref, log.q_ref)):
        np.testing.assert_allclose(pose_matrix(pose), forward_kinematics(log.robot, q), atol=1e-14)
        assert np.all(np.sum(pose[1:, 3:] * pose[:-1, 3:], axis=1) > 0)
    assert log.pose_ref[:, 3].min() < 0, "the wrist turned far enough for the sign to matter"


def test_the_two_poses_begin_on_the_same_sheet(irb140):
    """Rotations on either side of a half turn have quaternions that a >= 0 would set apart."""
    q = np.array([0, 0, 0, 0, 0, np.pi])
    reference = sample(hold(q - 1e-3, 0.005), 1e-3)
    log = run_closed_loop(
        AnalyticPlant(irb140), lambda *_: np.zeros(6), reference, start=(q + 1e-3, np.zeros(6))
    )
    assert np.max(np.abs(log.pose - log.pose_ref)) < 0.01


def test_model_residual_is_round_off_and_finds_another_model(log, irb140):
    assert 0 <= log.model_residual() < 1e-12
    assert replace(log, robot=irb140.with_payload(BODY)).model_residual() > 1e-3
    assert replace(log, steps_per_period=2).model_residual() > 1e-3, "it was one step"


def test_leaving_the_range_shows(log, irb140):
    q = np.zeros((3, 6))
    q[1, 0] = irb140.q_min[0] - 0.1
    q[2, 5] = irb140.q_max[5] + 0.2
    np.testing.assert_allclose(replace(log, q=q).range_excess(), [0.1, 0, 0, 0, 0, 0.2], atol=1e-12)
    assert not replace(log, q=np.zeros((3, 6))).range_excess().any()


def test_files_that_are_no_log(log, tmp_path):
    for name, content in (("text", b"t,x,y"), ("empty", b""), ("zip", b"PK\x05\x06" + bytes(18))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TwinError, match=f"{name} is not a log"):
            Log.load(tmp_path / name)
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(
        TwinError, match=r"array\.npy is not a log of this program \(it holds a single array\)"
    ):
        Log.load(tmp_path / "array.npy")
    with pytest.raises(TwinError, match=r"cannot read the log .*nowhere: No such file"):
        Log.load(tmp_path / "nowhere")
