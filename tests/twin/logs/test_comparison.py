"""Logs side by side: figures against plain sums, names, notes, the table as a person reads it."""

import math
from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.example_logs import PERIOD, N, broken_log, irb140_log, log_of, sliding_log
from twin.errors import TwinError
from twin.logs.columns import between, finite_part, first_non_finite
from twin.logs.figures import tool_turn
from twin.rotations.euler_angles import axis_angle_from_matrix
from twin.rotations.rotations import pose_matrix


def rows(text):
    """Cells of each line by its first words, as they stand behind two blanks or more."""
    lines = [line.split("   ") for line in text.splitlines()]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:] if cell.strip()] for cells in lines}


def test_the_figures_are_those_of_plain_sums():
    log = irb140_log()
    figures = twin.compare(log).figures["pd"]
    for joint in range(6):
        error = [a - b for a, b in zip(log.q_ref[:, joint].tolist(), log.q[:, joint].tolist(), strict=True)]
        assert figures.joint_rms[joint] == pytest.approx(math.sqrt(sum(e * e for e in error) / N), rel=1e-12)
        assert figures.joint_largest[joint] == max(map(abs, error))
        assert figures.peak_torque[joint] == max(map(abs, log.tau[:, joint].tolist()))
        assert figures.peak_speed[joint] == max(map(abs, log.qd[:, joint].tolist()))
    distance = [math.dist(a[:3], b[:3]) for a, b in zip(log.pose, log.pose_ref, strict=True)]
    assert figures.tool_largest == pytest.approx(max(distance), rel=1e-12)
    assert figures.tool_rms == pytest.approx(math.sqrt(sum(d * d for d in distance) / N), rel=1e-12)
    assert figures.tool_time == log.t[int(np.argmax(distance))]
    assert figures.worst_joint == "joint_6"
    assert figures.worst_time == log.t[int(np.argmax(np.abs(log.q_ref - log.q)[:, 5]))]
    assert figures.saturated_samples.tolist() == [0, 6, 0, 0, 0, 0]
    assert figures.first_saturated[1] == log.t[3]
    assert np.isnan(figures.first_saturated[0])


@pytest.mark.parametrize("error", [1e-12, 1e-3, 0.4, 0.9])  # with the last, more than half a turn
def test_the_turn_of_the_tool_is_the_angle_of_its_rotation(error):
    """By another formula: the axis and angle of the matrix between the two."""
    log = irb140_log(error=error)
    R, R_ref = (pose_matrix(pose)[:, :3, :3] for pose in (log.pose, log.pose_ref))
    angles = [axis_angle_from_matrix(a.T @ b)[1] for a, b in zip(R, R_ref, strict=True)]
    np.testing.assert_allclose(tool_turn(log), np.abs(angles), rtol=1e-6, atol=1e-14)


def test_names_are_those_of_the_controllers_or_else_of_the_files_or_numbers(tmp_path):
    for name, controller in (("old", "pd"), ("new", "pd"), ("other", "pid")):
        irb140_log(controller).save(tmp_path / f"{name}.npz")
    old, new, other = (tmp_path / f"{name}.npz" for name in ("old", "new", "other"))
    assert list(twin.compare([old, str(other)]).logs) == ["pd", "pid"]
    assert list(twin.compare([old, new]).logs) == ["old", "new"]
    assert list(twin.compare([irb140_log(), irb140_log()]).logs) == ["pd", "pd (2)"]
    assert list(twin.compare({"mine": old, "yours": irb140_log()}).logs) == ["mine", "yours"]


def test_the_table_has_a_column_a_log_and_units():
    text = str(twin.compare([irb140_log("pd"), irb140_log("pid", error=0.02)]))
    found = rows(text)
    assert text.splitlines()[0] == (
        "robot irb140, drives ideal, payload none, time 0.5 to 0.618 s, control period 2 ms"
    )
    assert found[""] == ["pd", "pid"]
    assert found["joint_6 [rad]"][0].endswith("/ 0.06")
    assert found["joint_6 [rad]"][1].endswith("/ 0.12")
    assert [cell.split(" at ")[0] for cell in found["worst joint"]] == ["joint_6", "joint_6"]
    assert found["joint_2 [N m]"] == ["15.1 (  2.0 %)"] * 2
    assert found["joint_2"] == ["6 of 60, first at 0.506 s"] * 2
    assert "note" not in text


def test_logs_that_have_no_room_beside_the_others_go_below():
    comparison = twin.compare({name: irb140_log() for name in ("first", "second", "third")})
    text = comparison.table(90)
    assert max(map(len, text.splitlines())) <= 90
    assert next(line.split() for line in text.splitlines() if "first " in line) == ["first", "second"]
    assert text.count("worst joint") == 2


def test_a_joint_that_slides_is_in_its_units_beside_one_that_turns():
    found = rows(str(twin.compare({"sliding": sliding_log(), "turning": irb140_log()})))
    assert len(found["joint_2 [m]"]) == len(found["joint_2 [rad]"]) == 1
    assert len(found["joint_1 [rad]"]) == 2
    assert {"joint_2 [N]", "joint_2 [m/s]"} <= set(found)


@pytest.mark.parametrize(
    ("other", "note"),
    [
        (lambda: irb140_log(samples=30), "the runs cover different times (0.5 to 0.618 s: pd; 0.5 to 0.558"),
        (lambda: irb140_log(period=4e-3, samples=30), "the control periods differ (2 ms: pd; 4 ms: pd (2))"),
        (
            lambda: irb140_log(scale=1.1),
            "pd and pd (2) have different references (0.03 apart in joint_3 at 0.524 s): each error",
        ),
        (lambda: log_of(twin.load("irb1600")), "the robots differ (irb140: pd; irb1600: pd (2))"),
        (sliding_log, "the robots have different joints (irb140 with 6 joints: pd; rtr with 3"),
        (broken_log, "pd (2) contains numbers that are not finite from 0.58 s on"),
    ],
)  # fmt: skip
def test_incomparable_logs_are_rejected(other, note):
    comparison = twin.compare([irb140_log(), other()])
    assert any(told.startswith(note) for told in comparison.notes), comparison.notes
    assert f"note: {note}" in str(comparison)


def test_one_motion_at_another_period_or_begun_later_is_the_same_motion():
    for other in (irb140_log(period=4e-3, samples=30), between(irb140_log(), start=0.55)):
        comparison = twin.compare([irb140_log(), other])
        assert not [note for note in comparison.notes if "motions" in note]


def test_a_run_that_diverged_has_the_figures_of_what_is_finite():
    log = irb140_log()
    comparison = twin.compare({"whole": between(log, end=log.t[39]), "broken": broken_log(first=40)})
    whole, broken = comparison.figures.values()
    assert broken.joint_rms.tobytes() == whole.joint_rms.tobytes()
    assert (broken.samples, broken.tool_largest) == (40, whole.tool_largest)
    assert np.isnan(twin.compare(broken_log(first=0)).figures["pd"].joint_rms).all()
    assert "unknown" in str(twin.compare(broken_log(first=0)))


def test_a_part_of_a_run_is_its_samples():
    log = replace(irb140_log(), arrays={"force": np.arange(N), "gain": np.array(2.0)})
    part = between(log, 0.51, 0.53)
    np.testing.assert_array_equal(part.t, log.t[5:16])
    np.testing.assert_array_equal(part.pose, log.pose[5:16])
    np.testing.assert_array_equal(part.arrays["force"], np.arange(5, 16))
    assert part.arrays["gain"] == 2.0
    assert part.q_motor is part.q  # one still stands for the other
    part.require_consistent()
    assert between(log) is log
    with pytest.raises(TwinError, match=r"no sample between 3 s and inf s.* lasts from 0\.5 s to 0\.618 s"):
        between(log, start=3.0)


def test_where_a_run_is_finite():
    assert first_non_finite(irb140_log()) is None
    log = broken_log(first=40)
    assert first_non_finite(log) == log.t[40]
    assert len(finite_part(log).t) == 40
    assert finite_part(log).t[-1] == pytest.approx(0.5 + 39 * PERIOD)


def test_file_that_is_no_log_is_rejected(tmp_path):
    with pytest.raises(ValueError, match="expected at least one log to compare, got none"):
        twin.compare([])
    with pytest.raises(ValueError, match="expected a Log or the path of one, got int"):
        twin.compare([1])
    with pytest.raises(TwinError, match=r"cannot read the log .*nowhere\.npz: No such file"):
        twin.compare(tmp_path / "nowhere.npz")
