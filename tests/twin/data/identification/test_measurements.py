"""Recorded tables, filters, differences: what comes between a recording and its equations."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import sosfiltfilt

import twin
from twin.base.errors import IdentificationError, RecordingError, RobotError
from twin.data.identification import Filtering, filtered_measurements
from twin.data.identification.measurements import chosen_cutoff, equations
from twin.data.identification.torque_model import TorqueModel
from twin.data.logs.recordings.columns import header_options
from twin.physics.robot.drives.drives import Drives

COUPLED = np.eye(6)
COUPLED[5, 4] = 1.0
DRIVES = Drives([30, -40, 50, 60, -45, 32], 1e-5, COUPLED, coulomb=2.0, viscous=0.5)
DT = 0.004


@pytest.fixture(scope="module")
def coupled(irb140):
    return irb140.with_drives("rigid", DRIVES)


@pytest.fixture(scope="module")
def recording():
    """Return a recording of a smooth motion, with arbitrary torques."""
    rng = np.random.default_rng(5)
    t = DT * np.arange(500)
    phases, speeds = rng.uniform(0, 6, (2, 6, 3))
    q = 0.3 * np.sum(np.sin(speeds * t[:, None, None] + phases), axis=2)
    return twin.logs.torque_recording(t, q, rng.normal(size=q.shape))


def table(path, names, values, separator=","):
    rows = [separator.join(names), *(separator.join(map(repr, row)) for row in values.tolist())]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


NAMES = [f"{kind}{k}" for kind in ("q", "tau") for k in range(1, 7)]


def same(found, recording, tolerance=1e-12):
    for name in ("t", "q", "tau"):
        np.testing.assert_allclose(getattr(found, name), getattr(recording, name), rtol=0, atol=tolerance)
    return True


def test_a_table_with_units_in_its_header_or_by_option(tmp_path, coupled, recording):
    t, q, tau = recording.t, recording.q, recording.tau
    path = table(tmp_path / "a.csv", ["t", *NAMES], np.column_stack([t, q, tau]))
    assert same(twin.logs.read_torque_recording(path, coupled), recording)
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert same(twin.logs.read_torque_recording(packed, coupled), recording)
    names = ["t[ms]", *(f"q{k} [deg]" for k in range(1, 7)), *(f"tau{k}_mNm" for k in range(1, 7))]
    path = table(tmp_path / "b.csv", names, np.column_stack([1e3 * t, np.rad2deg(q), 1e3 * tau]))
    assert same(twin.logs.read_torque_recording(path, coupled), recording)
    path = table(tmp_path / "c.csv", ["t", *NAMES], np.column_stack([1e3 * t, np.rad2deg(q), 1e3 * tau]))
    form = twin.logs.TableForm(header_options(time_unit="ms", angle_unit="deg", torque_unit="mNm"))
    assert same(twin.logs.read_torque_recording(path, coupled, form), recording)


def test_two_tables_of_motors_without_a_time_and_with_an_offset(tmp_path, coupled, recording):
    N, offset = coupled.drives.motor_matrix, np.array([0.1, -1.5, 1.5, 0, 0, 3.0])
    motors = [f"Joint_{k}" for k in range(1, 7)]
    positions = table(tmp_path / "q.csv", motors, (recording.q - offset) @ N.T)
    torques = table(tmp_path / "tau.csv", motors, np.linalg.solve(N.T, recording.tau.T).T)
    columns = header_options({"q*": "Joint_*", "tau*": "Joint_*"})
    form = twin.logs.TableForm(columns, torques, "both", DT, offset)
    assert same(twin.logs.read_torque_recording(positions, coupled, form), recording)
    one_side = replace(form, motor_side="positions")
    found = twin.logs.read_torque_recording(positions, coupled, one_side)
    np.testing.assert_allclose(found.tau @ N, recording.tau, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.q, recording.q, rtol=0, atol=1e-12)
    other = twin.logs.read_torque_recording(positions, coupled, replace(form, motor_side="torques"))
    np.testing.assert_allclose(other.tau, recording.tau, rtol=0, atol=1e-12)


def test_tables_that_cannot_be_read(tmp_path, irb140, coupled, recording):
    values = np.column_stack([recording.t, recording.q, recording.tau])

    def refused(names, rows, said, form=None, robot=coupled, error=RecordingError):
        path = table(tmp_path / "bad.csv", names, rows)
        with pytest.raises(error, match=said):
            twin.logs.read_torque_recording(path, robot, form)

    header = ["t", *NAMES]
    refused(["t", *NAMES[:-1], "x"], values, r"line 1: no column 'tau6'; expected the header t,q1")
    refused(["x", *NAMES], values, r"no column 't', the time; map it .* or give the time .*--sample-time")
    refused(["t", "q1[A]", *NAMES[1:]], values, "expected a unit of angle")
    broken = values.copy()
    broken[7, 3] = np.nan
    refused(header, broken, r"bad.csv: q3 of sample 8 is nan; expected finite numbers")
    jump = values.copy()
    jump[100:, 0] -= 0.1
    refused(header, jump, r"time goes from 0.396 s to 0.3 s at sample 101; expected rising times")
    no_gears, form = replace(irb140, drives=None), twin.logs.TableForm(motor_side="both")
    refused(header, values, "has no gear ratios", form, no_gears, RobotError)
    other = twin.logs.TableForm(torques=table(tmp_path / "tau.csv", NAMES[6:], values[:-1, 7:]))
    refused(header, values, "expected 500 rows, as in .*bad.csv, got 499", other)
    for form, said in (
        ({"motor_side": "gear"}, "expected motor_side to be positions, torques"),
        ({"reading": header_options({"q7": "x"})}, "expected the keys of columns to be among t, q1 to q6"),
        ({"reading": header_options({"q*": "x"})}, r"expected a \* for the joint's number"),
        ({"sample_time": -1.0}, "expected a sample time above 0 s"),
        ({"q_offset": [1.0, 2.0]}, r"expected q_offset of shape \(6,\), got \(2,\)"),
    ):
        refused(header, values, said, twin.logs.TableForm(**form), error=ValueError)


def test_equations_are_filtered_on_both_sides_alike_whatever_the_blocks(coupled, recording, monkeypatch):
    from twin.data.identification import measurements

    model = TorqueModel(coupled)
    measured = filtered_measurements(recording, Filtering(30.0, row_rate=60.0))

    def rows():
        blocks = list(equations(model, measured))
        return [np.concatenate(parts) for parts in zip(*blocks, strict=True)], len(blocks)

    (places, whole, used), count = rows()
    assert count == 1
    Y = model.regressor(measured.q, measured.qd, measured.qdd, measured.qd_friction)[..., model.base.columns]
    sections = measured.low_pass.sections
    middle = (places > 200) & (places < 300)
    for found, wanted in ((whole[..., :-1], Y), (whole[..., -1], measured.tau)):
        filtered = sosfiltfilt(sections, wanted, axis=0)[places]
        most = 1e-8 * np.max(np.abs(wanted))
        np.testing.assert_allclose(found[middle], filtered[middle], rtol=0, atol=most)
    assert not np.any(used[places * DT <= 1 / 30])
    monkeypatch.setattr(measurements, "BLOCK", 1)
    (again, parts, _), count = rows()
    assert count > 1
    np.testing.assert_array_equal(again, places)
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-9 * np.max(np.abs(whole)))


def test_oversampling_is_the_sum_of_the_correlations_of_neighbouring_rows(recording):
    """The noise is white before the filter; rows at twice the cut-off are nearly independent."""
    for rate, step in ((125.0, 2), (25.0, 10)):
        measured = filtered_measurements(recording, Filtering(10.0, row_rate=rate))
        h = measured.low_pass.response
        correlation = np.correlate(h, h, "full") / (h @ h)
        expected = np.sum(correlation[(len(h) - 1) % step :: step])
        assert measured.oversampling == pytest.approx(max(1.0, expected), rel=0.03)


def test_the_equation_holds_at_the_ends_of_a_recording_too(coupled, recording):
    """The filtered equation is also valid where the filter reaches beyond the ends of the recording."""
    model = TorqueModel(coupled)
    measured = filtered_measurements(recording, Filtering(10.0))
    Y = model.regressor(measured.q, measured.qd, measured.qdd, measured.qd_friction)
    measured = replace(measured, tau=Y @ model.parameters.values, used=np.ones(Y.shape[:2], dtype=bool))
    beta = model.base.K @ model.parameters.values
    for _, rows, _ in equations(model, measured):
        error = np.max(np.abs(rows[..., :-1] @ beta - rows[..., -1]))
        assert error <= 1e-11 * np.max(np.abs(measured.tau))


def test_engine_speeds_are_recognized_by_the_recursion(irb140, rng):
    """Positions of semi-implicit Euler: the speed before a step, and that after it for friction."""
    dt, qdd = 1e-3, rng.normal(size=(300, 6))
    qd = dt * np.cumsum(np.concatenate([np.zeros((1, 6)), qdd]), axis=0)
    q = dt * np.cumsum(qd, axis=0)  # q_k = q_(k-1) + dt qd_k
    t = dt * np.arange(len(q))
    recording = twin.logs.torque_recording(t, q, 0 * q)
    whole = Filtering(10.0, position_cutoff=499.999)  # a filter that lets nearly all pass
    measured = filtered_measurements(recording, whole, engine_steps=True)
    inner = slice(50, 250)
    np.testing.assert_allclose(measured.qd[inner], qd[inner], rtol=0, atol=1e-5)
    np.testing.assert_allclose(measured.qd_friction[inner], qd[51:251], rtol=0, atol=1e-5)
    np.testing.assert_allclose(measured.qdd[inner], qdd[inner], rtol=0, atol=1e-2)
    central = filtered_measurements(recording, whole)
    np.testing.assert_allclose(central.qd, (measured.qd + measured.qd_friction) / 2, rtol=0, atol=1e-12)


def test_a_cutoff_is_three_times_what_the_speeds_have_whatever_the_noise(rng):
    t = 1e-3 * np.arange(8000)[:, None]
    q = np.sin(2 * np.pi * np.array([0.5, 1.5]) * t) + 0.2 * np.sin(2 * np.pi * np.array([1.0, 3.0]) * t)
    for noise in (0.0, 1e-6, 1e-4):
        assert chosen_cutoff(q + noise * rng.normal(size=q.shape), 1e-3) == pytest.approx(9.0, abs=0.6)
    with pytest.raises(IdentificationError, match="joint 2 does not exceed its noise: give a cut-off"):
        chosen_cutoff(q * [1, 0] + 1e-4 * rng.normal(size=q.shape), 1e-3)


def test_cutoffs_and_lengths_that_cannot_be(recording):
    for filtering, said in (
        (Filtering(125.0), "a cut-off of 125 Hz is out of range for a sample every 0.004 s"),
        (Filtering(-1.0), "a cut-off of -1 Hz is out of range"),
        (Filtering(10.0, row_rate=1000.0), "expected a row rate above 0 and up to 250 Hz, got 1000"),
        (Filtering(0.5), r"1.996 s are too short for a filter of 0.5 Hz, which requires 2 s"),
    ):
        with pytest.raises(IdentificationError, match=said):
            filtered_measurements(recording, filtering)
    with pytest.raises(IdentificationError, match="nothing was recorded from 5 s to inf s"):
        filtered_measurements(recording, Filtering(10.0)).between(5.0, None)


def test_both_sides_of_coupled_drives(coupled, rng):
    """The columns of the other side are those of drives that rub there."""
    q, qd, qdd = rng.normal(size=(3, 50, 6))
    one, both = TorqueModel(coupled), TorqueModel(coupled, both_sides=True)
    assert both.parameters.names[84:] == (
        "drive 6 inertia at the joint", "drive 6 viscous, other side", "drive 6 Coulomb, other side",
    )  # fmt: skip
    assert (len(one.base.columns), len(both.base.columns)) == (58, 61)
    Y = both.regressor(q, qd, qdd, qd)
    np.testing.assert_array_equal(Y[..., :84], one.regressor(q, qd, qdd, qd))
    at_joints = coupled.with_drives("rigid", replace(DRIVES, friction_at=("joint",) * 6))
    other = twin.dynamics_regressor(at_joints, q, qd, qdd)
    np.testing.assert_array_equal(Y[..., 85:], other[..., 81:83])
    back = TorqueModel(at_joints, both_sides=True).regressor(q, qd, qdd, qd)
    np.testing.assert_array_equal(back[..., 85:], Y[..., 81:83])  # at the motor: on joints 5 and 6
    rest = np.zeros((50, 6, 3))
    rest[:, 5, 0] = qdd[:, 5]
    np.testing.assert_array_equal(Y[..., 84], rest[..., 0])
    alone = coupled.with_drives("rigid", replace(DRIVES, coupling=np.eye(6)))
    assert not TorqueModel(alone, True).coupled.size


def test_columns_by_their_places_and_torques_by_gains(tmp_path, coupled, recording):
    """A file without a header, with a column that is not used, and torques in other units."""
    rows = np.column_stack([recording.t, recording.q, np.zeros(len(recording.t)), 2.0 * recording.tau])
    path = tmp_path / "bare.csv"
    np.savetxt(path, rows, delimiter=",", fmt="%.17g")
    header = header_options("t=1, q*=2-7, tau*=9-14")
    form = twin.logs.TableForm(header, gains=[0.5] * 6)
    assert same(twin.logs.read_torque_recording(path, coupled, form), recording)
    for columns, said in (
        (None, "no header, and no column 't'|no column 't', the time"),
        ("t=1, q*=2-6, tau*=9-14", r"expected 6 columns for q\*, one per joint, got 2-6"),
        ("t=1, q*=2-7, tau*=10-15", "no header, and no column 'tau6'"),
    ):
        with pytest.raises((RecordingError, ValueError), match=said):
            twin.logs.read_torque_recording(path, coupled, twin.logs.TableForm(header_options(columns)))
    with pytest.raises(ValueError, match="expected 6 gains, one per joint, none of them 0"):
        twin.logs.read_torque_recording(path, coupled, twin.logs.TableForm(header, gains=[1.0, 2.0]))
