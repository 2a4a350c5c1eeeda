"""Sweeps' tables in files, and what is found in them: made-up outcomes whose answers are known."""

import csv

import numpy as np
import pytest
from matplotlib.image import imread

from scenarios.setup import Setup
from scenarios.studies.sweeps.pictures import FEW, draw
from scenarios.studies.sweeps.plan import Swept
from scenarios.studies.sweeps.summary import failures, findings, percent
from scenarios.studies.sweeps.tuning import Compared, Side, _figures
from twin.base.errors import TwinError
from twin.data.logs import columns as log_files
from twin.studies.sweeps.running import ROWS, column_names, write_tables
from twin.studies.sweeps.trial import OUTCOME, TROUBLES

NAMES = ("payload", "model.mass")
FLOATS = [name for name in OUTCOME.names if OUTCOME[name].kind == "f"]


def made(count, seed=0):
    """A table of runs that all hold, with an error that is the payload; each a draw of its own."""
    rng = np.random.default_rng(seed)
    own = [("draw", "i8"), ("replicate", "i4"), *((name, "f8") for name in NAMES)]
    table = np.zeros(count, dtype=own + OUTCOME.descr)
    table["draw"], table["replicate"] = np.arange(count), np.arange(count) * 10 // count
    for name in NAMES:
        table[name] = rng.random(count)
    table["joint_error"], table["passes"] = table["payload"], True
    table["tool_error"] = table["tool_error_time"] = np.nan
    return table


def swept(table, grid=(), **limits):
    return Swept("pd", Setup(), NAMES, grid, (), table, table[0], limits, False, "joint_error")


def test_a_csv_gives_every_bit_back(tmp_path):
    tables = {"pd": made(ROWS + 3), "./my law.py:A,B": made(2, seed=1)}
    tables["pd"]["joint_error"][:4] = [np.inf, 5e-324, 0.1 + 0.2, -0.0]
    tables["pd"]["trouble"][0] = TROUBLES.index("ran away")
    tables["pd"]["passes"][0] = False
    write_tables(tmp_path / "table.csv", tables)
    with open(tmp_path / "table.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == column_names(tables["pd"])
    assert [row["sample"] for row in rows] == [*map(str, range(ROWS + 3)), "0", "1"]
    assert {row["controller"] for row in rows} == set(tables)
    assert [(row["trouble"], row["passes"]) for row in rows[:2]] == [("ran away", "0"), ("", "1")]
    expected = np.concatenate(list(tables.values()))
    for column, name in (("joint_error_rad", "joint_error"), ("model.mass", "model.mass")):
        assert [float(row[column]).hex() for row in rows] == [float(x).hex() for x in expected[name]]
    assert rows[5]["tool_error_m"] == "nan"


def test_a_figure_that_only_tuned_gains_have_is_shown_beside_an_empty_cell():
    default, tuned = made(4), made(4)
    tuned["tool_error"] = 0.25
    sides = [Side(findings(swept(table)), 0, 0.0) for table in (default, tuned)]
    table = _figures(Compared(None, *sides), "joint_error", interval=False)
    names, *cells = ([str(cell) for cell in column.cells] for column in table.columns)
    rows = dict(zip(names, zip(*cells, strict=True), strict=True))
    assert rows["tool error [m]"] == ("", "0.25 /     0.25")
    assert rows["joint error [rad]"][0] == rows["joint error [rad]"][1]


def test_parquet_has_the_same_columns_and_bits(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    tables = {"pd": made(5), "pid": made(5, seed=1)}
    write_tables(tmp_path / "table.parquet", tables)
    read = parquet.read_table(tmp_path / "table.parquet").to_pydict()
    assert list(read) == column_names(tables["pd"])
    assert read["controller"] == ["pd"] * 5 + ["pid"] * 5
    assert read["payload"] == [*tables["pd"]["payload"], *tables["pid"]["payload"]]
    assert (read["trouble"][0], read["passes"][0]) == ("", True)

    monkeypatch.setattr(log_files, "import_module", lambda name: exec("raise ImportError"))
    with pytest.raises(TwinError, match=r"Parquet requires pyarrow, .* pip install 'irb-twin\[tables\]'"):
        write_tables(tmp_path / "other.parquet", tables)
    assert [path.name for path in tmp_path.iterdir()] == ["table.parquet"]  # nor a draft


def test_how_runs_fail():
    """Each way to fail is counted; what ended early failed in no other way; what no figure tells is told."""
    table = made(9)
    table["joint_error"] = 0.001
    table["trouble"][0], table["joint_error"][0] = TROUBLES.index("ran away"), np.inf
    table["saturated"][[0, 1]] = 3
    table["beyond_range"][[1, 2]] = 1e-3
    table["speed_ratio"] = 1 + 1e-10  # round-off
    table["speed_ratio"][3] = 1.1
    table["joint_error"][4] = 0.02
    table["passes"][[0, 1, 2, 3, 4, 5]] = False
    found = {
        one.name: np.flatnonzero(one.rows).tolist() for one in failures(table, {"joint_error": 0.01}, False)
    }
    assert {name: rows for name, rows in found.items() if rows} == {
        "ran away": [0], "beyond its range": [1, 2], "too fast": [3], "a drive saturated": [1],
        "joint error above 0.01": [4], "joint error above rounding errors": [5],
    }  # fmt: skip
    free = {one.name for one in failures(table, {}, True)}
    assert not free & {"beyond its range", "too fast"}


def test_findings_of_a_known_table():
    """The error is the payload, a limit on it holds for the share that is below; the mass matters nothing."""
    table = made(1000)
    table["passes"] = table["joint_error"] <= 0.25
    table["joint_error"][table["payload"] > 0.97] = np.inf
    found = findings(swept(table, joint_error=0.25))
    assert found.share.share == np.count_nonzero(table["payload"] <= 0.25) / 1000
    assert found.share.low < 0.25 < found.share.high
    assert found.failed == (("joint error above 0.25", np.count_nonzero(~table["passes"])),)
    spread = next(one for one in found.spreads if one.figure == "joint_error")
    assert (spread.median, spread.most) == tuple(np.sort(table["payload"])[[499, 949]])
    assert (spread.worst, spread.unit, spread.nominal) == (np.inf, "rad", table["joint_error"][0])
    assert "tool_error" not in [one.figure for one in found.spreads]  # nobody asked
    first, *_ = found.importance
    assert first.name == "payload"
    assert first.correlation > 0.99


def test_the_share_at_each_point_of_a_grid():
    table = made(60)
    table["model.mass"] = np.tile([0.9, 1.0, 1.1], 20)
    table["draw"] = np.repeat(np.arange(20), 3)
    table["passes"] = table["model.mass"] < 1.05
    found = findings(swept(table, grid=("model.mass",)))
    assert [(at.value, at.share) for at in found.on_grid] == [(0.9, 1.0), (1.0, 1.0), (1.1, 0.0)]


def test_pictures_show_what_failed(tmp_path):
    """Blue where all hold, and marks or red where not; of few runs and of many."""

    def drawn(table):
        draw(swept(table, joint_error=0.5), tmp_path / "a.png", "title")
        return imread(tmp_path / "a.png")[..., :3]

    few, many = made(50), made(FEW + 1)
    sound = drawn(few)
    for table in (few, many):
        table["passes"] = table["payload"] < 0.25
    assert not np.array_equal(drawn(few), sound)
    red = np.all(np.abs(drawn(many) - [165 / 255, 0, 38 / 255]) < 0.01, axis=-1)
    # The lower left panel, of three quarters of whose width no run holds, takes some eighth of the picture.
    assert red.mean() == pytest.approx(0.75 / 8, abs=0.02)


def test_shares_near_the_ends_have_their_digits():
    shares = [percent(share) for share in (0, 0.0004, 0.874, 0.9996, 1)]
    assert shares == ["0.0 %", "0.040 %", "87.4 %", "99.960 %", "100.0 %"]
