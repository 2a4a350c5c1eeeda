"""Logs side by side: figures against plain sums, names, notes, the table as a person reads it."""

import math
from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.example_logs import N, broken_log, irb140_log, log_of, sliding_log
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
    old, new, other = (tmp_path / f"{name}.npz" for name in ("old", "new", "other"))
    for path, controller in ((old, "pd"), (new, "pd"), (other, "pid")):
        irb140_log(controller).save(path)
    for given, names in (
        ([old, str(other)], ["pd", "pid"]),
        ([old, new], ["old", "new"]),
        ([irb140_log(), irb140_log()], ["pd", "pd (2)"]),
        ({"mine": old, "yours": irb140_log()}, ["mine", "yours"]),
    ):
        assert list(twin.compare(given).logs) == names
    for given, error, told in (
        ([], ValueError, "expected at least one log to compare, got none"),
        ([1], ValueError, "expected a Log or the path of one, got int"),
        (tmp_path / "nowhere.npz", TwinError, r"cannot read the log .*nowhere\.npz: No such file"),
    ):
        with pytest.raises(error, match=told):
            twin.compare(given)


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
    found = rows(str(twin.compare({"sliding": sliding_log(), "turning": irb140_log()})))
    assert len(found["joint_2 [m]"]) == len(found["joint_2 [rad]"]) == 1
    assert len(found["joint_1 [rad]"]) == 2
    assert {"joint_2 [N]", "joint_2 [m/s]"} <= set(found)


def test_logs_that_have_no_room_beside_the_others_go_below():
    comparison = twin.compare({name: irb140_log() for name in ("first", "second", "third")})
    text = comparison.table(90)
    assert max(map(len, text.splitlines())) <= 90
    assert next(line.split() for line in text.splitlines() if "first " in line) == ["first", "second"]
    assert text.count("worst joint") == 2


OTHER_REFERENCES = "pd and pd (2) have different references (0.03 apart in joint_3 at 0.524 s): each error"


@pytest.mark.parametrize(
    ("other", "note"),
    [
        (lambda: irb140_log(samples=30), "the runs cover different times (0.5 to 0.618 s: pd; 0.5 to 0.558"),
        (lambda: irb140_log(period=4e-3, samples=30), "the control periods differ (2 ms: pd; 4 ms: pd (2))"),
        (lambda: irb140_log(scale=1.1), OTHER_REFERENCES),
        (lambda: log_of(twin.load("irb1600")), "the robots differ (irb140: pd; irb1600: pd (2))"),
        (sliding_log, "the robots have different joints (irb140 with 6 joints: pd; rtr with 3"),
        (broken_log, "pd (2) contains numbers that are not finite from 0.58 s on"),
    ],
)
def test_what_cannot_be_compared_is_noted(other, note):
    comparison = twin.compare([irb140_log(), other()])
    assert any(told.startswith(note) for told in comparison.notes), comparison.notes
    assert f"note: {note}" in str(comparison)
    # One motion at another period or for a shorter time is the same motion.
    assert any("references" in told for told in comparison.notes) == (note is OTHER_REFERENCES)


def test_a_run_that_diverged_has_the_figures_of_what_is_finite():
    log, broken = irb140_log(), broken_log(first=40)
    comparison = twin.compare({"whole": between(log, end=log.t[39]), "broken": broken})
    whole, part = comparison.figures.values()
    assert part.joint_rms.tobytes() == whole.joint_rms.tobytes()
    assert (part.samples, part.tool_largest) == (40, whole.tool_largest)
    assert "unknown" in str(twin.compare(broken_log(first=0)))
    assert first_non_finite(log) is None
    assert first_non_finite(broken) == log.t[40]
    np.testing.assert_array_equal(finite_part(broken).t, log.t[:40])


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
