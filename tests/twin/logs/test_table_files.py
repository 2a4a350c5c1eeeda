"""Logs as CSV, Parquet and tables of pandas: every bit comes back, whoever reads them."""

import csv
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

import twin
from tests.support.example_logs import irb140_log, sliding_log
from twin.errors import RecordingError, TwinError
from twin.logs import columns as column_module
from twin.logs.columns import columns, write_csv, write_parquet


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


def test_a_table_of_pandas_has_the_same_columns_and_knows_the_run(log, tmp_path):
    frame = log.to_frame()
    assert list(frame.columns) == [column.name for column in columns(log)]
    assert frame["joint_1_tau_Nm"].to_numpy().tobytes() == log.tau[:, 0].tobytes()
    assert frame["joint_2_saturated"].dtype == bool
    assert frame.attrs["robot"] == "irb140"
    assert frame.attrs["bandwidth"] == "20.0"
    write_csv(tmp_path / "a.csv", log)
    read = pd.read_csv(tmp_path / "a.csv")
    np.testing.assert_allclose(read["joint_2_q_rad"], frame["joint_2_q_rad"], rtol=1e-15)


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
