import numpy as np
import pytest

import twin
from tests.support.guided_steps import PERIOD, START, TOOL, decay, driven, fault_of, poses, same
from twin.egm.guidance.path_guidance import path_axes
from twin.egm.guidance.run import Phase, Run, make_guidance
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.wire.messages import SensorMessage
from twin.errors import EgmError
from twin.logs.recordings.recording import joint_recording, tool_recording, write_recording
from twin.trajectories.joint_paths import recorded_motion
from twin.trajectories.tool_paths import through_recording

FAST = {"mode": "path", "level": 2, "position_gain": 20.0, "max_speed_deviation": 1e6}
WAY = np.array([0.02, 0.09, -0.05])
CORRECTION = np.array([0.3, 5e-3, -2e-3])
"""Correction of the tests; its first component must be ignored."""


def recording(robot, way, duration=1.5):
    """Return a recording of the tool: the start pose displaced by way(u) (N, 3), u from 0 to 1.

    The tool is at rest at both ends.
    """
    t = np.linspace(0.0, duration, 31)
    u = t / duration
    recorded = np.repeat(twin.pose_vector(poses(robot, START))[None], len(t), axis=0)
    recorded[:, :3] += way(u * u * (3.0 - 2.0 * u))
    return tool_recording(t, recorded)


def straight(robot):
    return recording(robot, lambda u: np.outer(u, WAY))


def curved(robot):
    def way(u):
        return 0.08 * np.column_stack([np.cos(1.2 * u) - 1.0, np.sin(1.2 * u), 0.3 * u])

    return recording(robot, way)


def guided(robot, path, correction=None, **settings):
    """Return a guidance that has begun, with an optional correction."""
    guidance = make_guidance(robot, GuidanceSettings(**FAST | settings), TOOL, path)
    guidance.begin(guidance.start, PERIOD)
    if correction is not None:
        guidance.take(SensorMessage(path_correction=np.array(correction), age=0.5), guidance.start)
    return guidance


def beside(robot, path, q):
    """Return where the path moves, the offset of the tool in the path frame (K, 3), and its rotation (N,)."""
    motion = through_recording(path)(PERIOD * np.arange(len(q)))
    T = poses(robot, q)
    v = motion.twist[:, :3]
    moves = np.linalg.norm(v, axis=1) > 1e-4
    x = v[moves] / np.linalg.norm(v[moves], axis=1)[:, None]
    y = np.cross(x, motion.T_base_tool[moves, :3, 2])
    y /= np.linalg.norm(y, axis=1)[:, None]
    axes = np.stack([x, y, np.cross(x, y)], axis=1)
    off = np.einsum("kij,kj->ki", axes, (T - motion.T_base_tool)[moves, :3, 3])
    turn = np.max(np.abs((T - motion.T_base_tool)[:, :3, :3]), axis=(1, 2))
    return np.flatnonzero(moves), off, turn


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_correction_follows_the_law_normal_to_a_curved_path(request, name):
    """Limits act on the correction but not on the path; without a correction the arm moves as recorded."""
    arm = request.getfixturevalue(name)
    path = curved(arm)
    guidance, motion = guided(arm, path), recorded_motion(arm, path, T_flange_tool=TOOL)
    q = driven(guidance, guidance.start, 1501)
    same(q, motion(PERIOD * np.arange(1502))[0])
    assert guidance.ended()
    same(guidance.speed(q[-1]), 0.0, 1e-9)
    same(guidance.programmed(), 0.0, 1e-9)

    guidance = guided(arm, path, CORRECTION)
    moving, off, turn = beside(arm, path, driven(guidance, guidance.start, 1499))
    done = 1.0 - decay(20.0, 20.0, 1499)[moving]
    assert done[-1] == pytest.approx(1.0, abs=1e-9)
    same(off, np.outer(done, [0.0, 5e-3, -2e-3]))
    same(turn, 0.0)

    def left(speed):
        return min(1.0, 0.02 / (np.max(np.abs(speed)) + 1e-9))

    limited = guided(arm, path, CORRECTION)
    _, off_limited, turn = beside(arm, path, driven(limited, limited.start, 1499, left))
    soon = np.searchsorted(moving, 150)
    assert 0.0 < off_limited[soon, 1] < 0.8 * off[soon, 1]
    same(off_limited[:, 0], 0.0, 1e-7)  # scaling a step is not exactly linear
    same(turn, 0.0, 1e-7)


def test_path_axes_are_those_of_the_manual():
    """For motion along x with the tool pointing down, -y is to the left of the path, and z is up."""
    down = np.array([[0.0, 0.0, -1.0]])
    same(path_axes(np.array([[0.2, 0.0, 0.0]]), down)[0], np.diag([1.0, 1.0, 1.0]))
    same(path_axes(np.array([[0.0, 0.2, 0.0]]), down)[0].T, [[0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    still, go, up = np.zeros(3), np.array([0.1, 0.0, 0.0]), np.array([0.0, 0.0, 0.1])
    v = np.array([still, go, still, up, -1e-5 * go, -go])  # they hold at rest and along z of the tool
    y = path_axes(v, np.tile(down, (6, 1)))[:, :, 1]
    same(y, np.array([[0.0, 1.0, 0.0]] * 5 + [[0.0, -1.0, 0.0]]))


def test_initial_offset_decays_by_the_law(robot):
    path = straight(robot)
    guidance = guided(robot, path, CORRECTION, level=0)
    q = driven(guidance, guidance.start + 1e-3, 1499)
    moving, off, turn = beside(robot, path, q)
    left = decay(20.0, None, 1499)
    same(off[:, 0], off[0, 0] * left[moving] / left[moving[0]])
    assert turn[0] > 1e-3
    same(turn, turn[0] * left, 1e-5)  # compared by matrix elements: first order only
    same(turn[-1], 0.0)


def test_tool_rounds_a_corner_without_a_jump(robot):
    """The tool rests at the corner.  Only the guided axes are corrected."""

    def smooth(u):
        u = np.clip(u, 0.0, 1.0)
        return u * u * (3.0 - 2.0 * u)

    t = np.linspace(0.0, 3.0, 61)
    recorded = np.repeat(twin.pose_vector(poses(robot, START))[None], len(t), axis=0)
    recorded[:, 0] += 0.05 * smooth(t / 1.2)
    recorded[:, 1] += 0.05 * smooth(t / 1.2 - 1.5)
    path = tool_recording(t, recorded)
    for axes, end in (("y,z", [0.0, 5e-3, -2e-3]), ("z", [0.0, 0.0, -2e-3])):
        guidance = guided(robot, path, CORRECTION, level=0, axes=axes)
        q = driven(guidance, guidance.start, 2900)
        speed = np.linalg.norm(np.diff(poses(robot, q)[:, :3, 3], axis=0), axis=1) / PERIOD
        assert np.max(speed) < 0.12 + 20.0 * 2.0 * np.hypot(5e-3, 2e-3)  # a jump would be 5 m/s
        same(beside(robot, path, q)[1][-1], end, 1e-9)


def test_path_can_be_joint_or_tool_recording_or_file(robot, tmp_path):
    path = straight(robot)
    motion = recorded_motion(robot, path, T_flange_tool=TOOL)
    t = np.linspace(0.0, motion.duration, 301)
    joints = joint_recording(t, motion(t)[0], robot)
    write_recording(tmp_path / "path.csv", joints)
    ends = []
    for given in (path, joints, tmp_path / "path.csv"):
        guidance = guided(robot, given, CORRECTION)
        same(guidance.start, START)
        ends.append(driven(guidance, guidance.start, 1500)[-1])
    same(ends[1:], ends[0], 1e-7)  # joint and tool splines differ between the samples
    same(ends[2], ends[1])


def test_run_ends_at_the_corrected_end_of_the_path_for_any_period(robot):
    path = straight(robot)
    settings = GuidanceSettings(**FAST | {"max_speed_deviation": 10.0, "ramp_time": 0.1})
    guidance = make_guidance(robot, settings, TOOL, path)
    run = Run(robot, settings, guidance, guidance.start, 4e-3)
    run.take(SensorMessage(path_correction=CORRECTION))
    run.samples(374)
    assert run.phase is Phase.GUIDED
    assert guidance.converged(run.q)
    run.samples(100)
    assert (run.phase, run.fault) == (Phase.FINISHED, None)
    T, T_end = poses(robot, run.q), poses(robot, recorded_motion(robot, path, T_flange_tool=TOOL)(1.5)[0])
    assert np.linalg.norm(T[:3, 3] - T_end[:3, 3]) == pytest.approx(np.hypot(5e-3, 2e-3), abs=1e-6)
    assert (T - T_end)[:3, 3] @ WAY == pytest.approx(0.0, abs=1e-9)


def test_correction_converges_within_its_window_and_is_a_fault_if_invalid(robot):
    guidance = guided(robot, straight(robot))
    assert fault_of(guidance, SensorMessage(q=START)).number == 41826
    assert "finite" in fault_of(guidance, SensorMessage(path_correction=np.full(3, np.inf))).sentence
    guidance.take(SensorMessage(), START)
    same(guidance.speed(guidance.start), guidance.programmed())
    for correction, converged in (([0.0, 0.9e-3, -0.9e-3], True), ([0.5, 1.1e-3, 0.0], False)):
        guidance.take(SensorMessage(path_correction=np.array(correction)), START)
        assert guidance.converged(guidance.start) == converged


def test_path_that_cannot_be_corrected_is_rejected(robot):
    along = recording(robot, lambda u: np.outer(0.1 * u, poses(robot, START)[:3, 2]))
    still, two = recording(robot, lambda u: np.zeros((len(u), 3))), twin.load("two_link")
    joints = joint_recording([0.0, 1.0], [[0.0, 0.0], [0.1, 0.2]], two)
    for arm, tool, path, sentence in (
        (robot, TOOL, along, "on this path the tool moves along its z axis only"),
        (robot, TOOL, still, "on this path the tool stands still"),
        (two, None, joints, "six joints or more"),
    ):
        with pytest.raises(EgmError, match=sentence):
            make_guidance(arm, GuidanceSettings(**FAST), tool, path)
    guidance = make_guidance(robot, GuidanceSettings(**FAST), TOOL, straight(robot))
    with pytest.raises(EgmError, match="joint_2 is at 21 deg, the path starts at 20 deg"):
        guidance.begin(START + np.deg2rad([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]), PERIOD)
