"""Columns of logs and tables of them, logs side by side, and pictures of them over time."""

import csv
import math
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

import twin
from tests.support.example_logs import N, broken_log, irb140_log, log_of, sliding_log
from twin.base.errors import RecordingError, TwinError, UnknownNameError
from twin.data.logs import columns as column_module
from twin.data.logs.columns import between, columns, finite_part, thinned, write_csv
from twin.data.logs.figures import tool_distance, tool_turn
from twin.data.logs.log import JOINTS, STANDS_FOR
from twin.physics.rotations.euler_angles import axis_angle_from_matrix
from twin.studies.views.curves import Curve, _same_reference, _view, draw, panels, plotted, power


def rows(text):
    """Cells of each line by its first words, as they stand behind two blanks or more."""
    lines = [line.split("   ") for line in text.splitlines()]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:] if cell.strip()] for cells in lines}


def test_a_signal_is_drawn_of_the_logs_that_have_it():
    log = irb140_log()
    having = replace(log, law_signals={"disturbance": np.ones_like(log.q)})
    (legend,) = plotted({"pd": log, "dob": having}, "disturbance").legends
    assert [text.get_text() for text in legend.get_texts()] == ["dob"]


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


@pytest.mark.parametrize("error", [1e-12, 0.4, 0.9])  # with the last, more than half a turn
def test_the_turn_of_the_tool_is_the_angle_of_its_rotation(error):
    """By another formula: the axis and angle of the matrix between the two."""
    log = irb140_log(error=error)
    R, R_ref = (twin.pose_matrix(pose)[:, :3, :3] for pose in (log.pose, log.pose_ref))
    angles = [axis_angle_from_matrix(a.T @ b)[1] for a, b in zip(R, R_ref, strict=True)]
    np.testing.assert_allclose(tool_turn(log), np.abs(angles), rtol=1e-6, atol=1e-14)


def test_names_are_those_of_the_controllers_or_else_of_the_files_or_numbers(tmp_path):
    old, new, other = (tmp_path / f"{name}.npz" for name in ("old", "new", "other"))
    for path, controller in ((old, "pd"), (new, "pd"), (other, "pid")):
        irb140_log(controller).save(path)
    for compared, names in (
        ([old, str(other)], ["pd", "pid"]),
        ([old, new], ["old", "new"]),
        ([irb140_log(), irb140_log()], ["pd", "pd (2)"]),
        ({"mine": old, "yours": irb140_log()}, ["mine", "yours"]),
    ):
        assert list(twin.compare(compared).logs) == names
    for compared, told in (([], "at least one log to compare, got none"), ([1], "the path of one, got int")):
        with pytest.raises(ValueError, match=told):
            twin.compare(compared)


def test_the_table_has_a_column_a_log_and_units():
    text = str(twin.compare([irb140_log("pd"), irb140_log("pid", error=0.02)]))
    found = rows(text)
    assert found[""] == ["pd", "pid"]
    assert found["joint_6 [rad]"][0].endswith("/ 0.06")
    assert found["joint_6 [rad]"][1].endswith("/ 0.12")
    assert found["joint_2"] == ["6 of 60, first at 0.506 s"] * 2
    found = rows(str(twin.compare({"sliding": sliding_log(), "turning": irb140_log()})))
    assert len(found["joint_2 [m]"]) == len(found["joint_2 [rad]"]) == 1
    assert {"joint_2 [N]", "joint_2 [m/s]"} <= set(found)
    text = twin.compare({name: irb140_log() for name in ("first", "second", "third")}).table(90)
    assert max(map(len, text.splitlines())) <= 90
    assert text.count("worst joint") == 2, "what has no room goes below"


OTHER_REFERENCES = "pd and pd (2) have different references (0.03 apart in joint_3 at 0.524 s): each error"


def test_what_cannot_be_compared_is_noted():
    for other, note in (
        (lambda: irb140_log(samples=30), "the runs cover different times (0.5 to 0.618 s: pd; 0.5 to 0.558"),
        (lambda: irb140_log(period=4e-3, samples=30), "the control periods differ (2 ms: pd; 4 ms: pd (2))"),
        (lambda: irb140_log(scale=1.1), OTHER_REFERENCES),
        (lambda: log_of(twin.load("irb1600")), "the robots differ (irb140: pd; irb1600: pd (2))"),
        (sliding_log, "the robots have different joints (irb140 with 6 joints: pd; rtr with 3"),
        (broken_log, "pd (2) contains numbers that are not finite from 0.58 s on"),
    ):
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
    assert column_module.first_non_finite(log) is None
    assert column_module.first_non_finite(broken) == log.t[40]
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


def test_a_panel_has_values_reference_limits_and_cuts(logs):
    for what, array, wanted, limit, unit in (
        ("torque", "tau", None, "drive_torque_max", "N m"),
        ("speed", "qd", "qd_ref", "qd_max", "rad/s"),
        ("position", "q", "q_ref", "q_max", "rad"),
    ):
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
        found = {panel.title: panel for panel in panels(logs, "pose")}
        np.testing.assert_array_equal(found["tool c"].curves[0].values, log.pose[:, 5])
        np.testing.assert_array_equal(found["tool c"].curves[0].reference, log.pose_ref[:, 5])


def test_the_power_of_ten_that_is_taken_out():
    powers = {0.5: 0, 1999.0: 0, 2e4: 3, 0.019: -3, 1e-3: -3, 9e-4: -6, 3e-16: -18, 0.0: 0}
    assert [power(size) for size in powers] == [*powers.values()]


def test_joints_can_be_chosen(logs):
    assert [panel.title for panel in panels(logs, "error", ["joint_4", "joint_2"])] == ["joint_2", "joint_4"]
    with pytest.raises(UnknownNameError, match=r"unknown joint 'elbow': known are joint_1, .*joint_6"):
        panels(logs, "error", ["elbow"])
    with pytest.raises(ValueError, match="for all quantities but the pose"):
        panels(logs, "pose", ["joint_1"])
    with pytest.raises(ValueError, match=r"expected one of error, torque, .*, got 'jerk'; no"):
        panels(logs, "jerk")


def test_joints_that_slide_and_turn_do_not_share_a_panel(logs):
    found = panels({"sliding": sliding_log(), **logs}, "torque")
    held = {(panel.title, panel.unit): [curve.log for curve in panel.curves] for panel in found}
    assert held["joint_2", "N"] == ["sliding"]
    assert held["joint_2", "N m"] == ["one", "two"]
    assert held["joint_1", "N m"] == ["sliding", "one", "two"]


def test_the_axis_spans_what_is_finite_and_limits_that_are_near():
    for values, lowest, highest in (
        ([0.0, 1.0, np.nan, np.inf, -1.0], (-1.2, -1.0), (1.0, 1.2)),
        ([0.0, 6.0], (-1.0, 0.0), (10.0, 11.0)),
        ([0.0, 0.0], (-1.0, -1.0), (1.0, 1.0)),
        ([0.3, 0.3 + 1e-16], (0.2, 0.3 - 5e-8), (0.3 + 5e-8, 0.4)),  # rounding is not blown up
    ):
        low, high = _view([Curve("a", T, np.array(values), None, -10.0, 10.0)])
        assert lowest[0] <= low <= lowest[1] < highest[0] <= high <= highest[1]


def test_chosen_joints_have_one_scale():
    """Every curve is inside it, whatever the order; without a choice each joint has a scale of its range."""
    log = irb140_log(error=0.02)
    for joints in (["joint_2", "joint_6"], ["joint_6", "joint_2"]):
        panels = plotted({"one": log}, "position", joints).axes
        (low, high), other = (axes.get_ylim() for axes in panels)
        assert other == (low, high)
        drawn = np.concatenate([line.get_ydata() for axes in panels for line in axes.lines])
        assert np.all((low <= drawn) & (drawn <= high))
    assert len({axes.get_ylim() for axes in plotted({"one": log}, "position").axes}) > 1


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


def test_a_picture_is_drawn_of_logs_that_have_little_in_common(tmp_path):
    """Between two dollars matplotlib reads mathematics, and fails at what is none."""
    logs = {"sliding": sliding_log(), "$\\no{$": irb140_log(samples=1), "diverged": broken_log(first=5)}
    comparison = twin.compare(logs)
    assert comparison.picture(tmp_path / "a.png", "position") is comparison
    with Image.open(tmp_path / "a.png") as image:
        assert image.format == "PNG"


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


def names(log):
    return [column.name for column in columns(log)]


def test_a_column_is_called_after_joint_quantity_and_unit():
    log = irb140_log()
    found = {column.name: column for column in columns(log)}
    for name, label, values in (
        ("t_s", "t [s]", log.t),
        ("joint_2_q_rad", "joint_2 q [rad]", log.q[:, 1]),
        ("joint_3_qdd_ref_rad_s2", "joint_3 qdd_ref [rad/s^2]", log.qdd_ref[:, 2]),
        ("joint_2_saturated", "joint_2 saturated", log.saturated[:, 1]),
        ("tool_z_m", "tool z [m]", log.pose[:, 2]),
        ("tool_error_m", "tool error [m]", np.linalg.norm((log.pose - log.pose_ref)[:, :3], axis=1)),
    ):
        assert found[name].label == label
        np.testing.assert_array_equal(found[name].values, values)


def test_every_array_of_joints_has_its_columns_and_no_name_is_there_twice(irb1400):
    """The gap of a closed loop is there where there is one."""
    log = irb140_log()
    other = {name: getattr(log, name) + 1.0 for name in STANDS_FOR}
    assert {*JOINTS, "saturated", "error"} == set(column_module.QUANTITIES)
    assert not [name for name in names(log) for array in STANDS_FOR if array in name]  # one stands for both
    found = names(replace(log, **other))
    assert len(set(found)) == len(found) == 1 + 6 * len(column_module.QUANTITIES) + 15
    assert {"joint_1_tau_joint_Nm", "joint_1_q_motor_rad", "joint_1_qd_seen_rad_s"} <= set(found)
    sliding = names(sliding_log())  # in metres and newtons
    assert {"joint_2_q_m", "joint_2_qdd_ref_m_s2", "joint_2_tau_demand_N", "joint_1_tau_Nm"} <= set(sliding)
    assert "loop_gap_m" in names(log_of(irb1400))
    assert "loop_gap_m" not in found


def test_what_a_scenario_adds_for_every_sample_is_a_column():
    force = np.arange(3.0 * N).reshape(N, 3)
    own = {"force": force, "step": np.arange(N), "gain": np.array(3.0), "words": np.array(["a"] * N)}
    found = {column.name: column.values for column in columns(replace(irb140_log(), arrays=own))}
    assert [name for name in found if name.startswith("own")] == [
        "own_force_1", "own_force_2", "own_force_3", "own_step",
    ]  # fmt: skip
    np.testing.assert_array_equal(found["own_force_2"], force[:, 1])


SERIES = arrays(np.float64, st.integers(0, 300), elements=st.floats(allow_nan=True, width=16))


@settings(max_examples=40)
@example(np.where(np.arange(300) == 100, np.nan, 0.0), 20)  # one gap, within a part
@given(SERIES, st.integers(5, 60))
def test_thinning_preserves_the_extremes_of_every_part(series, most):
    """Whatever sample is left out, near it on either side there are one at least as low and one as high."""
    kept, N = thinned(series, most), len(series)
    assert len(kept) <= most
    assert np.all(np.diff(kept) > 0)
    assert {0, N - 1} <= {*kept} or N == 0
    near = -(-N // ((most - 2) // 3))  # samples: the length of a part
    for k in np.setdiff1d(np.arange(N), kept):
        around = series[kept[np.abs(kept - k) < near]]
        assert np.isnan(series[k]) or (np.nanmin(around) <= series[k] <= np.nanmax(around))
        assert not np.isnan(series[k]) or np.isnan(around).any()


def test_a_spike_of_one_sample_is_there_and_few_samples_stay_as_they_are():
    series = np.sin(np.linspace(0, 9, 600_000))
    series[123_456] = 50.0
    assert 123_456 in thinned(series, 1000)
    assert thinned(np.arange(7.0), 7).tolist() == list(range(7))
    for wrong, most in ((np.zeros((3, 2)), 10), (np.zeros(3), 4), (np.zeros(3), np.nan)):
        with pytest.raises(ValueError, match=r"shape \(N,\) and at least 5 points"):
            thinned(wrong, most)


@pytest.fixture(scope="module")
def log():
    """With the doubles that are lost first."""
    log = irb140_log()
    tau = log.tau.copy()
    tau[:6, 0] = [np.nan, np.inf, -0.0, 5e-324, 1.0 / 3.0, -1.7976931348623157e308]
    own = {"provenance": np.array('{"irb-twin": "0.1.0"}'), "bandwidth": np.array(20.0)}
    return replace(log, tau=tau, tau_joint=None, arrays=own)


def table(path, separator=","):
    """Names and numbers of a CSV file, by Python's own reader."""
    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter=separator)
    return header, np.array([[float(text.replace(",", ".")) for text in row] for row in rows])


@pytest.mark.parametrize(("every", "comma"), [(1, False), (7, True)])
def test_every_bit_of_a_csv_comes_back(log, tmp_path, monkeypatch, every, comma):
    """A joint may have any name."""
    names = ('a,b"c', *log.robot.joint_names[1:])
    log = replace(log, robot=replace(log.robot, tree=replace(log.robot.tree, names=names)))
    monkeypatch.setattr(column_module, "ROWS", 4)  # several parts
    write_csv(tmp_path / "a.csv", log, every=every, decimal_comma=comma)
    header, numbers = table(tmp_path / "a.csv", ";" if comma else ",")
    assert header == [column.name for column in columns(log)]
    assert 'a,b"c_q_rad' in header
    for k, column in enumerate(columns(log)):
        wanted = column.values[::every].astype(float)
        assert numbers[:, k].tobytes() == wanted.tobytes(), column.name


@pytest.mark.parametrize(("made", "comma"), [(irb140_log, False), (sliding_log, True)])
def test_an_exported_log_is_a_recording_of_its_joints_or_its_tool(tmp_path, made, comma):
    log, path = made(), tmp_path / "a.csv"
    write_csv(path, log, decimal_comma=comma)
    recorded = twin.read_recording(path, log.robot)
    np.testing.assert_array_equal(recorded.t, log.t)
    np.testing.assert_array_equal(recorded.q, log.q)
    names = ", ".join(f"{name}={name}_q_ref" for name in log.robot.joint_names)
    np.testing.assert_array_equal(twin.read_recording(path, log.robot, columns=names).q, log.q_ref)
    names = {name: f"tool_{name}" for name in "xyzabcd"}
    recorded = twin.read_recording(path, log.robot, kind="tool", columns=names)
    np.testing.assert_allclose(recorded.poses, log.pose, rtol=0, atol=1e-15)
    q = log.q.copy()
    q[5, 2] = np.nan
    write_csv(path, replace(log, q=q, q_motor=None, q_seen=None))
    with pytest.raises(RecordingError, match=r"line 7, column 'joint_3_q_rad': expected a finite number"):
        twin.read_recording(path, log.robot)


def test_a_table_of_pandas_has_the_same_columns_and_knows_the_run(log):
    frame = log.to_frame()
    assert list(frame.columns) == [column.name for column in columns(log)]
    assert frame["joint_1_tau_Nm"].to_numpy().tobytes() == log.tau[:, 0].tobytes()
    assert frame["joint_2_saturated"].dtype == bool
    assert frame.attrs["robot"] == "irb140"
    assert frame.attrs["bandwidth"] == "20.0"


def test_parquet_has_the_same_table_and_knows_the_run(log, tmp_path):
    column_module.write_parquet(tmp_path / "a.parquet", log, every=3)
    read = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    for column in columns(log):
        values = read[column.name].to_numpy()
        assert values.tobytes() == np.ascontiguousarray(column.values[::3]).tobytes()
    told = {name.decode(): text.decode() for name, text in read.schema.metadata.items()}
    assert told["robot"] == "irb140"
    assert (told["controller"], told["drives"]) == ("pd", "ideal")
    assert told["provenance"] == '{"irb-twin": "0.1.0"}'


@pytest.mark.parametrize(("library", "what"), [("pandas", "a table of pandas"), ("pyarrow", "Parquet")])
def test_missing_library_is_reported_with_the_extra_to_install(log, tmp_path, monkeypatch, library, what):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(TwinError, match=rf"{what} requires {library}.*pip install 'irb-twin\[tables\]'"):
        log.to_frame() if library == "pandas" else column_module.write_parquet(tmp_path / "a.parquet", log)
    assert not list(tmp_path.iterdir())
