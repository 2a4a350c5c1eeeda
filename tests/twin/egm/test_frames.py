import numpy as np
import pytest

from twin.egm.guidance.pose_guidance import base_in_world, guidance_frames, parse_frame, work_object
from twin.egm.guidance.settings import GuidanceSettings
from twin.errors import EgmError
from twin.rotations.rotations import pose_matrix

CORR = (0.1, -0.2, 0.3, 0.5, 0.5, 0.5, 0.5)
SENSOR = (0.4, 0.0, -0.1, 0.8, 0.0, 0.6, 0.0)
WOBJ = (0.5, 0.1, 0.2, 0.6, 0.0, 0.0, 0.8)
TOOL0 = pose_matrix((0.3, 0.4, 0.7, 0.0, 0.6, 0.0, 0.8))


def text(values):
    return ",".join(map(str, values))


def frames(robot, **settings):
    return guidance_frames(robot, GuidanceSettings(mode="pose", **settings), TOOL0)


def same(T, expected):
    np.testing.assert_allclose(T, expected, rtol=0, atol=1e-15)


def test_text_defines_position_or_pose():
    same(parse_frame("1, -2, 3", "wobj"), pose_matrix((1, -2, 3, 1, 0, 0, 0)))
    same(parse_frame(text(CORR), "wobj"), pose_matrix(CORR))
    same(parse_frame(None, "wobj"), np.eye(4))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ("1,2", "corr_frame: expected a frame as x,y,z or as x,y,z,a,b,c,d .* got '1,2'"),
        ("1,2,nan", "corr_frame: .* got '1,2,nan'"),
        ("1,2,3,1,1,0,0", "corr_frame: .* got a quaternion of norm 1.41421"),
        ("500,0,300", "corr_frame: .* at most 20 m away, got 500: are these millimetres?"),
    ],
)
def test_invalid_frame_text_raises_egm_error(robot, frame, message):
    with pytest.raises(EgmError, match=message):
        frames(robot, corr_frame=frame)


def test_frames_are_relative_to_base_work_object_or_flange(robot):
    found = frames(
        robot, wobj=text(WOBJ), corr_frame=text(CORR), corr_frame_type="wobj",
        sensor_frame=text(SENSOR), sensor_frame_type="tool",
    )  # fmt: skip
    same(found.T_base_wobj, pose_matrix(WOBJ))
    same(found.T_base_corr, pose_matrix(WOBJ) @ pose_matrix(CORR))
    same(found.T_base_sensor, TOOL0 @ pose_matrix(SENSOR))
    same(frames(robot, corr_frame=text(CORR)).T_base_corr, pose_matrix(CORR))
    by_default = frames(robot, corr_frame=text(CORR), corr_frame_type="tool")  # that of the correction
    same(by_default.T_base_sensor, TOOL0 @ pose_matrix(CORR))
    same(frames(robot).T_base_sensor, np.eye(4))
    same(work_object(GuidanceSettings(wobj=text(WOBJ))), pose_matrix(WOBJ))
    same(work_object(GuidanceSettings()), np.eye(4))


@pytest.mark.parametrize("where", ["floor", "wall", "inverted"])
def test_world_z_is_up_for_every_mounting(robot, where):
    mounted = robot.mounted(where)
    T_world_base = base_in_world(mounted.gravity)
    down = T_world_base[:3, :3] @ mounted.gravity / np.linalg.norm(mounted.gravity)
    same(down, (0.0, 0.0, -1.0))
    same(T_world_base[:3, :3] @ T_world_base[:3, :3].T, np.eye(3))
    assert np.linalg.det(T_world_base) == pytest.approx(1.0, abs=1e-15)
    found = frames(mounted, corr_frame=text(CORR), corr_frame_type="world")
    same(T_world_base @ found.T_base_corr, pose_matrix(CORR))


def test_world_base_orientation_is_the_smallest_rotation():
    same(base_in_world(np.array([0.0, 0.0, -9.81])), np.eye(4))
    same(base_in_world(np.zeros(3)), np.eye(4))
    on_wall = base_in_world(np.array([-9.81, 0.0, 0.0]))[:3, :3]
    same(on_wall @ (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    same(on_wall @ (0.0, 1.0, 0.0), (0.0, 1.0, 0.0))
    same(base_in_world(np.array([0.0, 0.0, 9.81]))[:3, :3], np.diag([1.0, -1.0, -1.0]))
