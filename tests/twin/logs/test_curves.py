"""Pictures of logs over time: what stands in which panel, what the axes span, and that all can be drawn."""

from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

import twin
from tests.support.example_logs import broken_log, irb140_log, sliding_log
from twin.errors import UnknownNameError
from twin.logs.figures import tool_distance
from twin.logs.views.curves import Curve, _same_reference, _view, draw, panels, power

T = np.linspace(0.0, 1.0, 5)


@pytest.fixture(scope="module")
def logs():
    return {"one": irb140_log(), "two": irb140_log(error=0.02)}


def test_the_error_has_a_panel_a_joint_and_two_of_the_tool(logs):
    found = panels(logs, "error")
    assert [(panel.title, panel.unit) for panel in found] == [
        *((f"joint_{k}", "rad") for k in range(1, 7)),
        ("tool, distance from the reference", "m"),
        ("tool, angle from the reference", "rad"),
    ]
    assert all([curve.log for curve in panel.curves] == ["one", "two"] for panel in found)
    two = logs["two"]
    np.testing.assert_array_equal(found[2].curves[1].values, (two.q_ref - two.q)[:, 2])
    np.testing.assert_array_equal(found[6].curves[1].values, tool_distance(two))


@pytest.mark.parametrize(
    ("what", "array", "wanted", "limit", "unit"),
    [
        ("torque", "tau", None, "drive_torque_max", "N m"),
        ("speed", "qd", "qd_ref", "qd_max", "rad/s"),
        ("position", "q", "q_ref", "q_max", "rad"),
    ],
)
def test_a_panel_has_values_reference_limits_and_cuts(logs, what, array, wanted, limit, unit):
    log = logs["one"]
    for joint, panel in enumerate(panels(logs, what)):
        curve = panel.curves[0]
        assert panel.unit == unit
        np.testing.assert_array_equal(curve.values, getattr(log, array)[:, joint])
        assert (curve.reference is None) == (wanted is None)
        if wanted:
            np.testing.assert_array_equal(curve.reference, getattr(log, wanted)[:, joint])
        assert curve.high == getattr(log.robot, limit)[joint]
        assert curve.low == (log.robot.q_min[joint] if what == "position" else -curve.high)
        assert curve.cut.sum() == (6 if joint == 1 else 0)


def test_the_pose_has_position_and_quaternion_and_what_was_wanted(logs):
    found = {panel.title: panel for panel in panels(logs, "pose")}
    np.testing.assert_array_equal(found["tool c"].curves[0].values, logs["one"].pose[:, 5])
    np.testing.assert_array_equal(found["tool c"].curves[0].reference, logs["one"].pose_ref[:, 5])
    assert [found[f"tool {name}"].unit for name in "xyzabcd"] == ["m"] * 3 + [""] * 4


def test_joints_can_be_chosen(logs):
    assert [panel.title for panel in panels(logs, "error", ["joint_4", "joint_2"])] == ["joint_2", "joint_4"]
    with pytest.raises(UnknownNameError, match=r"unknown joint 'elbow': known are joint_1, .*joint_6"):
        panels(logs, "error", ["elbow"])
    with pytest.raises(ValueError, match="for all quantities but the pose"):
        panels(logs, "pose", ["joint_1"])
    with pytest.raises(
        ValueError, match=r"expected one of error, torque, .*, moment to draw, got 'jerk'; no"
    ):
        panels(logs, "jerk")


def test_joints_that_slide_and_turn_do_not_share_a_panel(logs):
    found = panels({"sliding": sliding_log(), **logs}, "torque")
    held = {(panel.title, panel.unit): [curve.log for curve in panel.curves] for panel in found}
    assert held["joint_2", "N"] == ["sliding"]
    assert held["joint_2", "N m"] == ["one", "two"]
    assert held["joint_1", "N m"] == ["sliding", "one", "two"]


@pytest.mark.parametrize(
    ("values", "lowest", "highest"),
    [
        ([0.0, 1.0, np.nan, np.inf, -1.0], (-1.2, -1.0), (1.0, 1.2)),
        ([0.0, 6.0], (-1.0, 0.0), (10.0, 11.0)),
        ([0.0, -6.0], (-11.0, -10.0), (0.0, 1.0)),
        ([0.0, 0.0], (-1.0, -1.0), (1.0, 1.0)),
        ([np.nan], (-1.0, -1.0), (1.0, 1.0)),
        ([0.3, 0.3 + 1e-16], (0.2, 0.3 - 5e-8), (0.3 + 5e-8, 0.4)),  # rounding is not blown up
    ],
)
def test_the_axis_spans_what_is_finite_and_limits_that_are_near(values, lowest, highest):
    low, high = _view([Curve("a", T, np.array(values), None, -10.0, 10.0)])
    assert lowest[0] <= low <= lowest[1] < highest[0] <= high <= highest[1]


@pytest.mark.parametrize(
    ("size", "exponent"),
    [(0.5, 0), (1999.0, 0), (2e4, 3), (0.019, -3), (1e-3, -3), (9e-4, -6), (3e-16, -18), (0.0, 0)],
)
def test_the_power_of_ten_that_is_taken_out(size, exponent):
    assert power(size) == exponent
    assert exponent == 0 or 1.0 <= size * 10.0**-exponent < 1000.0


def test_a_log_s_colour_is_in_the_picture_where_it_was_drawn(tmp_path):
    """Pixels of the first colour, with that log and without."""
    blue = []
    for k, shown in enumerate((irb140_log(), broken_log(first=0))):
        draw({"first": shown, "second": irb140_log(error=0.02)}, tmp_path / f"{k}.png", joints=["joint_3"])
        with Image.open(tmp_path / f"{k}.png") as image:
            pixels = np.asarray(image.convert("RGB")).astype(int)
        blue.append(int((np.abs(pixels - [0x00, 0x72, 0xB2]).sum(axis=2) < 30).sum()))
    assert blue[0] > 3 * blue[1] > 0  # of the second there is only the legend's


def test_a_shorter_run_of_the_same_motion_was_wanted_to_be_the_same():
    whole, part = Curve("a", T, T, T**2), T[:3]
    assert _same_reference(Curve("b", part, part, part**2), whole)
    for t, reference in ((part, part**2 + 1e-6), (2 * part, part**2), (part, None)):
        assert not _same_reference(Curve("b", t, part, reference), whole)


@pytest.mark.parametrize(("what", "samples"), [("position", 1), ("pose", 20)])
def test_a_picture_is_drawn_of_logs_that_have_little_in_common(what, samples, tmp_path):
    """Between two dollars matplotlib reads mathematics, and fails at what is none."""
    logs = {"sliding": sliding_log(), "$\\no{$": irb140_log(samples=samples), "diverged": broken_log(first=5)}
    comparison = twin.compare(logs)
    assert comparison.picture(tmp_path / "a.png", what) is comparison
    with Image.open(tmp_path / "a.png") as image:
        assert image.format == "PNG"
        assert image.width == 1330


def test_a_picture_grows_with_the_joints_and_is_whole_or_not_there(tmp_path, logs):
    heights = []
    for joints in (["joint_1"], ["joint_1", "joint_2", "joint_3"]):
        draw(logs, tmp_path / "a.png", "error", joints)
        with Image.open(tmp_path / "a.png") as image:
            heights.append(image.height)
    assert all(a < b for a, b in pairwise(heights))
    for name in ("a.pdf", "a.svg"):
        draw(logs, tmp_path / name, joints=["joint_1"])
        assert (tmp_path / name).stat().st_size > 5000
    with pytest.raises(ValueError, match=r"ends in \.png or \.pdf or \.svg, got '.*a\.jpg'"):
        draw(logs, tmp_path / "a.jpg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pdf", "a.png", "a.svg"]
