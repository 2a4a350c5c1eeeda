"""The columns of a log, curves in few points, and tables as CSV, Parquet and of pandas."""

import csv
import sys
from dataclasses import replace

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import twin
from tests.support.example_logs import N, irb140_log, log_of, sliding_log
from twin.errors import RecordingError, TwinError
from twin.logs import columns as column_module
from twin.logs.columns import QUANTITIES, columns, thinned, write_csv, write_parquet
from twin.logs.log import JOINTS, STANDS_FOR


def names(log):
    return [column.name for column in columns(log)]


def test_a_column_is_called_after_joint_quantity_and_unit():
    log = irb140_log()
    found = {column.name: column for column in columns(log)}
    for name, label, values in (
        ("t_s", "t [s]", log.t),
        ("joint_2_q_rad", "joint_2 q [rad]", log.q[:, 1]),
        ("joint_3_qd_rad_s", "joint_3 qd [rad/s]", log.qd[:, 2]),
        ("joint_3_qdd_ref_rad_s2", "joint_3 qdd_ref [rad/s^2]", log.qdd_ref[:, 2]),
        ("joint_6_tau_Nm", "joint_6 tau [N m]", log.tau[:, 5]),
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
    assert {*JOINTS, "saturated", "error"} == set(QUANTITIES)
    assert not [name for name in names(log) for array in STANDS_FOR if array in name]  # one stands for both
    found = names(replace(log, **other))
    assert len(set(found)) == len(found) == 1 + 6 * len(QUANTITIES) + 15
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


@settings(max_examples=80)
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
    write_parquet(tmp_path / "a.parquet", log, every=3)
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
        log.to_frame() if library == "pandas" else write_parquet(tmp_path / "a.parquet", log)
    assert not list(tmp_path.iterdir())
