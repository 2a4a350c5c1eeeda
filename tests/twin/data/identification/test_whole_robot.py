"""A log has its whole robot, and is refused where that cannot be; references and recordings are checked."""

import re
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import controllers
import twin
from twin.base.errors import RecordingError, RobotError, TwinError
from twin.data.logs.log import Log
from twin.data.logs.recordings.torque_recording import read_torque_recording
from twin.physics.control.plant import AnalyticPlant


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A robot's file of one's own, and a log of it."""
    folder = tmp_path_factory.mktemp("logs")
    urdf = folder / "mine.urdf"
    urdf.write_text(twin.load("irb140").urdf.read_text())
    robot = twin.load(urdf)
    reference = twin.sample_semi_implicit(twin.quintic(np.zeros(6), np.full(6, 0.2), 0.1), 1e-3)
    law = controllers.make("pd", robot)
    twin.run_closed_loop(AnalyticPlant(robot, 1e-3), law, reference).save(folder / "run.npz")
    return urdf, folder / "run.npz"


@pytest.fixture
def moved(files):
    """The robot's file with a longer upper arm, for a while."""
    urdf, run = files
    text = urdf.read_text()
    before = Log.load(run)
    place = re.search(r'<joint name="joint_3".*?xyz="([^"]+)"', text, re.DOTALL)
    x, y, z = place[1].split()
    urdf.write_text(text.replace(place[0], place[0].replace(place[1], f"{x} {y} {float(z) + 0.2}")))
    assert np.max(np.abs(twin.load(urdf).tree.T_parent_joint - before.robot.tree.T_parent_joint)) > 0.1
    yield before, run
    urdf.write_text(text)


def altered(run, name, **arrays):
    """The log with other arrays, `None` for none."""
    with np.load(run) as archive:
        content = {**archive, **arrays}
    path = run.with_name(name)
    np.savez(path, **{key: array for key, array in content.items() if array is not None})
    return path


def test_a_log_has_the_robot_of_its_run_whatever_became_of_its_file(moved):
    before, run = moved
    log = Log.load(run)
    for name in ("T_parent_joint", "axes", "inertias", "T_joint_flange"):
        np.testing.assert_array_equal(getattr(log.robot.tree, name), getattr(before.robot.tree, name))
    poses = replace(log).pose  # computed, not read
    np.testing.assert_array_equal(poses, log.pose)
    assert log.model_residual() < 1e-12


def test_an_old_log_whose_robot_s_file_has_changed_is_refused(moved):
    _, run = moved
    geometry = ("structure", "loop_points", "T_parent_joint", "axes", "T_joint_flange", "embedding")
    old = altered(run, "old.npz", **dict.fromkeys(geometry))
    told = "'irb140' is now another robot: its kinematics does not reproduce the logged"
    with pytest.raises(RobotError, match=told):
        Log.load(old)


def test_limits_that_a_program_altered_come_back(files, irb140):
    log = replace(Log.load(files[1]), robot=replace(irb140, q_max=irb140.q_max - 0.1))
    log.save(files[1].with_name("limits.npz"))
    back = Log.load(files[1].with_name("limits.npz")).robot
    np.testing.assert_array_equal(back.q_max, irb140.q_max - 0.1)


def test_robots_that_cannot_be_are_refused(files):
    run, log = files[1], Log.load(files[1])
    inertias, mirror = log.robot.tree.inertias, np.diag([1.0, 1.0, -1.0, 1.0])
    flat = inertias.copy()
    flat[2, 4:] = [1.0, 5.0, 1.0, 0.0, 0.0, 0.0]
    for arrays, said in (
        ({"inertias": flat}, "no body has the inertia of link"),
        ({"tau_max": np.zeros(6)}, "torque limits tau_max above 0 N m"),
        ({"T_flange_tool": mirror}, "expected T_flange_tool to be rigid"),
        ({"T_joint_flange": mirror}, "expected T_joint_flange to be rigid"),
        ({"axes": log.robot.tree.axes[:3]}, "expected axes to be float64 of shape"),
    ):
        with pytest.raises(TwinError, match=said):
            Log.load(altered(run, "wrong.npz", **arrays))
    with pytest.raises(RobotError, match=r"another robot: revolute joint joint_1 .* instead of more"):
        Log.load(altered(run, "wrong.npz", structure=np.array(["more"])))
    path = altered(run, "twice.npz")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("q.npy", archive.read("q.npy"))
    with pytest.raises(TwinError, match=r"it contains q\.npy twice"):
        Log.load(path)


def test_references_that_are_no_real_numbers_are_refused(irb140):
    reference = twin.sample_semi_implicit(twin.quintic(np.zeros(6), np.full(6, 0.2), 0.01), 1e-3)
    law = controllers.make("pd", irb140)
    masked = np.ma.array(reference.q, mask=np.eye(11, 6, dtype=bool))
    for name, array, said in (
        ("q", masked, "some are masked"),
        ("qd", reference.qd + 0j, "complex numbers"),
        ("qdd", reference.qdd.astype(str), "text"),
    ):
        wrong = reference._replace(**{name: array})
        with pytest.raises(ValueError, match=rf"expected reference\.{name} to be real .*{said}"):
            twin.run_closed_loop(AnalyticPlant(irb140, 1e-3), law, wrong)
        with pytest.raises(ValueError, match=rf"expected reference\.{name} to be real .*{said}"):
            twin.run_rollouts(irb140, law, wrong)


def test_joints_that_are_there_by_two_names_are_refused(irb140, tmp_path):
    path = tmp_path / "both.csv"
    ours, theirs = (",".join(f"{name}{k}" for k in range(1, 7)) for name in ("q", "joint_"))
    torques = ",".join(f"tau{k}" for k in range(1, 7))
    rows = "\n".join(",".join([f"{0.01 * k:.2f}", *["0"] * 18]) for k in range(12))
    path.write_text(f"t,{ours},{theirs},{torques}\n{rows}\n")
    twice = "the header contains the joints as joint_1{} to joint_6{} and as q1 to q6"
    with pytest.raises(RecordingError, match=twice.format("", "")):
        twin.read_recording(path, irb140)
    told = {f"q{k}": f"joint_{k}" for k in range(1, 7)}
    assert twin.read_recording(path, irb140, columns=told).q.shape == (12, 6)
    path.write_text(re.sub(r"joint_(\d)", r"joint_\1_q_rad", path.read_text()))
    with pytest.raises(RecordingError, match=twice.format("_q", "_q")):
        read_torque_recording(path, irb140)
