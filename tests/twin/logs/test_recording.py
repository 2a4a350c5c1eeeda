import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from twin.errors import RecordingError
from twin.logs.recordings.reading import read_recording
from twin.logs.recordings.recording import TOOL_COLUMNS, tool_recording, write_recording

HEADER = "t,x,y,z,a,b,c,d"
ROWS = ["0,0.5,0,0.7,1,0,0,0", "0.1,0.51,0,0.7,1,0,0,0", "0.2,0.52,0,0.7,0.5,0.5,0.5,0.5"]


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def with_value(line, column, value):
    """The three good rows, one value replaced; `line` counts from 1, the header's."""
    rows = [row.split(",") for row in ROWS]
    rows[line - 2][TOOL_COLUMNS.index(column)] = value
    return [HEADER, *(",".join(row) for row in rows)]


def test_order_of_columns_other_columns_blanks_line_ends_and_a_byte_order_mark_do_not_matter(tmp_path):
    t, poses = read_recording(write(tmp_path / "path.csv", HEADER, *ROWS))
    np.testing.assert_array_equal(t, [0.0, 0.1, 0.2])
    np.testing.assert_array_equal(poses[2], [0.52, 0.0, 0.7, 0.5, 0.5, 0.5, 0.5])
    other = [
        "\ufeffd, note ,c,b,a,z,y,x,t",
        " 0,start,0,0,1,0.7,0,0.5,0 ",
        "",
        "0,,0,0,-1,0.7,0,0.51,0.1",
        " , ",
    ]
    (tmp_path / "path.csv").write_bytes("\r\n".join([*other, "", ""]).encode())
    t_other, poses_other = read_recording(tmp_path / "path.csv")
    np.testing.assert_array_equal(t_other, t[:2])
    np.testing.assert_array_equal(poses_other, poses[:2])


def test_written_is_read_bit_for_bit(tmp_path):
    rng = np.random.default_rng(5)
    t = 1.7e9 + np.cumsum(rng.uniform(0.01, 0.02, 50))
    quats = np.array([1.0, 0, 0, 0]) + 0.1 * np.cumsum(rng.normal(size=(50, 4)), axis=0)
    quats /= np.linalg.norm(quats, axis=1)[:, None]
    recorded = tool_recording(t, np.column_stack([rng.normal(size=(50, 3)), quats]))
    write_recording(tmp_path / "path.csv", recorded)
    assert (tmp_path / "path.csv").read_text().startswith(HEADER + "\n")
    again = read_recording(tmp_path / "path.csv")
    np.testing.assert_array_equal(again.t, t)
    np.testing.assert_allclose(again.poses, recorded.poses, rtol=0, atol=3e-16)  # normalised once more


def test_quaternions_are_made_unit_and_continuous_in_sign(tmp_path):
    rows = ["0,0,0,0,0.707,0,0.707,0", "1,0,0,0,-0.707,0,-0.707,0", "2,0,0,0,-0.866,0,-0.5,0"]
    poses = read_recording(write(tmp_path / "path.csv", HEADER, *rows)).poses
    np.testing.assert_allclose(np.linalg.norm(poses[:, 3:], axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(poses[1, 3:], [np.sqrt(0.5), 0, np.sqrt(0.5), 0], rtol=0, atol=1e-15)
    assert poses[2, 3] > 0.8


STEPS = "expected steps of at least 1e-06 s"
FINITE, TIME = "expected a finite number", "line 4, column 't':"
PAUSE = "expected steps within a factor of 100 (a pause needs samples too)"
SECONDS = "expected seconds, at most 1e+10: are these milliseconds?"
METRES = "expected metres, at most 10: are these millimetres?"
TURN = "the tool turns by 180 deg from the sample before; expected at most 120 deg: record more densely"
UNIT = "expected a unit quaternion (norm 1 within 0.001), got norm"
WANTED = f"expected the header {HEADER}, got"


def no_columns(got, *names):
    """Return the sentence on a header without these columns."""
    there = ", ".join(f"'{name}'" for name in names)
    given = ", ".join(f"{name}=NAME" for name in names)
    hint = f"(if it has another name, give it in columns: '{given}')"
    return f", line 1: no column {there}; {WANTED} '{got}' {hint}"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([""], no_columns("", *TOOL_COLUMNS)),
        ([HEADER], ": expected at least 2 samples, got 0"),
        ([HEADER, ROWS[0]], ": expected at least 2 samples, got 1"),
        (["t,x,y,a,b,c,d", "0,0,0,1,0,0,0"], no_columns("t,x,y,a,b,c,d", "z")),
        (["x," + HEADER], no_columns(f"x,{HEADER}", "x").replace("no column", "more than one column")),
        ([HEADER.replace(",", "|")], no_columns("t|x|y|z|a|b|c|d", *TOOL_COLUMNS)),
        ([HEADER, *ROWS, "0.3,1"], ", line 5: expected 8 values, as many as the header, got 2"),
        (with_value(3, "y", "nan"), f", line 3, column 'y': {FINITE}, got nan"),
        (with_value(4, "t", "1e999"), f", line 4, column 't': {FINITE}, got inf"),
        (with_value(4, "z", "high"), ", line 4, column 'z': expected a number, got 'high'"),
        (with_value(4, "z", "0_1"), ", line 4, column 'z': expected a number, got '0_1'"),
        ([HEADER, "", ROWS[0], "", "0.1,0,0,inf,1,0,0,0"], f", line 5, column 'z': {FINITE}, got inf"),
        (with_value(4, "z", "١"), ", line 4, column 'z': expected a number, got '١'"),
        (with_value(4, "t", "0.05"), f", {TIME} time runs backwards, 0.05 s after 0.1 s; {STEPS}"),
        (with_value(4, "t", "0.1"), f", {TIME} time repeats, 0.1 s after 0.1 s; {STEPS}"),
        (with_value(4, "t", "0.1000001"), f", {TIME} time hardly moves, 0.1000001 s after 0.1 s; {STEPS}"),
        (with_value(4, "t", "10.2"), f", {TIME} a step of 10.1 s, the shortest is 0.1 s; {PAUSE}"),
        (with_value(4, "t", "1e12"), f", {TIME} 1e+12 s is too large for a time; {SECONDS}"),
        (with_value(3, "x", "-515"), f", line 3, column 'x': -515 m is beyond any arm; {METRES}"),
        (with_value(3, "a", "0.99"), f", line 3, columns a,b,c,d: {UNIT} 0.99"),
        (with_value(3, "a", "1e300"), f", line 3, columns a,b,c,d: {UNIT} 1e+09"),
        ([HEADER, "0,0,0,0,1,0,0,0", "1,0,0,0,0,0,1,0"], f", line 3, columns a,b,c,d: {TURN}"),
    ],
)
def test_every_fault_is_named(tmp_path, lines, message):
    path = write(tmp_path / "path.csv", *lines)
    with pytest.raises(RecordingError) as error:
        read_recording(path)
    assert str(error.value) == f"{path}{message}"


def test_files_that_cannot_be_read_or_written(tmp_path):
    (tmp_path / "latin.csv").write_bytes("t,x,y,z,a,b,c,d,höhe\n".encode("latin-1"))
    for path, told in (
        (tmp_path / "none.csv", r"none\.csv: cannot be read: No such file"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "latin.csv", "not text in UTF-8"),
        ("/dev/zero", r"/dev/zero: cannot be read: it is larger than 1e\+08 bytes"),
    ):
        with pytest.raises(RecordingError, match=told):
            read_recording(path)
    with pytest.raises(RecordingError, match="cannot be written"):
        write_recording(tmp_path / "no" / "path.csv", tool_recording([0.0, 1.0], [[0, 0, 0, 1, 0, 0, 0]] * 2))


def test_a_field_without_end_is_one_sentence(tmp_path):
    for value in ("1" * 200_000, "1" * 1000, '"' + "1\n" * 100_000):
        with pytest.raises(RecordingError) as error:
            read_recording(write(tmp_path / "path.csv", *with_value(3, "y", value)))
        assert len(str(error.value)) < 300
        assert "\n" not in str(error.value)


def test_arrays_are_checked_by_sample():
    poses = np.tile([0.5, 0, 0.7, 1, 0, 0, 0], (3, 1))
    with pytest.raises(RecordingError, match="the recording, sample 2, column 't': time runs backwards"):
        tool_recording([0.0, 1.0, 0.5], poses)
    with pytest.raises(ValueError, match=r"poses of shape \(N, 7\), got \(2,\) and \(3, 7\)"):
        tool_recording([0.0, 1.0], poses)


def check_whatever_comes(path, data):
    """A right answer, or one clear sentence that names the file."""
    path.write_bytes(data)
    try:
        t, poses = read_recording(path)
    except RecordingError as error:
        assert str(error).startswith(str(path))  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
        return
    assert len(t) >= 2
    assert poses.shape == (len(t), 7)
    assert np.all(np.diff(t) > 0)
    assert np.all(np.isfinite(poses))
    np.testing.assert_allclose(np.linalg.norm(poses[:, 3:], axis=1), 1.0, rtol=1e-14)
    assert np.all(np.sum(poses[1:, 3:] * poses[:-1, 3:], axis=1) > 0)


relaxed = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
numbers = st.one_of(
    st.floats(width=64).map(repr),
    st.integers(-3, 3).map(str),
    st.sampled_from(["", " ", "1e400", "nan", "0.1.2", '"', "1;2", "\0", "x\ry", "²"]),
)


rows = st.lists(st.lists(numbers, min_size=7, max_size=9).map(",".join), max_size=5)
texts = st.builds(
    lambda end, rows: end.join([HEADER, *rows]).encode(), st.sampled_from(["\n", "\r\n", "\r"]), rows
)


@relaxed
@given(st.binary(max_size=200) | texts)
def test_any_bytes_and_values(tmp_path, data):
    check_whatever_comes(tmp_path / "path.csv", data)


@relaxed
@given(
    arrays(np.float64, (4, 3), elements=st.floats(-10, 10)),
    arrays(np.float64, (4, 4), elements=st.floats(-1, 1)).filter(
        lambda q: np.all(np.linalg.norm(q, axis=1) > 1e-3)
    ),
    st.lists(st.floats(-1e9, 1e9), min_size=4, max_size=4, unique=True).map(sorted)
    | st.lists(st.floats(1e-3, 0.2), min_size=4, max_size=4).map(lambda steps: np.cumsum(steps).tolist()),
)
def test_any_plausible_recording(tmp_path, positions, quats, times):
    quats = quats / np.linalg.norm(quats, axis=1)[:, None]
    rows = [
        ",".join(map(repr, [t, *p, *q]))
        for t, p, q in zip(times, positions.tolist(), quats.tolist(), strict=True)
    ]
    check_whatever_comes(tmp_path / "path.csv", "\n".join([HEADER, *rows]).encode())
