"""Measured speeds as a second source of derivatives: columns qd1, qd2, ... beside the positions."""

import numpy as np
import pytest

import twin
from tests.support.identified_arms import excited, slides_as_it_starts
from twin.base.errors import RecordingError
from twin.data.identification import Filtering, filtered_measurements
from twin.data.identification.excitation import stored_excitation

pytestmark = [
    pytest.mark.slow("fits recordings"),
    pytest.mark.filterwarnings("ignore::twin.errors.IdentificationWarning"),
]

DT = 0.004


@pytest.fixture(scope="module")
def linear(irb140):
    return slides_as_it_starts(irb140)


@pytest.fixture(scope="module")
def arrays(linear):
    """Positions with noise of 0.5 mrad, exact speeds, torques with noise of 1 %."""
    rng = np.random.default_rng(1)
    t, q, tau = excited(linear, 1, DT)
    tau = tau + 0.01 * np.sqrt(np.mean(tau**2, axis=0)) * rng.normal(size=tau.shape)
    return t, q + 5e-4 * rng.normal(size=q.shape), tau, stored_excitation(linear)(t)[1]


def error(robot, arrays, qd):
    recording = twin.logs.torque_recording(*arrays[:3], qd=qd)
    found = twin.identify(robot, recording, filtering=Filtering(10.0), deviations="white")
    true = found.model.base.K @ found.model.parameters.values
    return np.linalg.norm(found.beta - true) / np.linalg.norm(true), found


def test_measured_speeds_replace_those_of_noisy_positions(linear, arrays):
    without, found = error(linear, arrays, None)
    assert "measured speeds" not in found.how[0]
    seen = arrays[3] + 1e-3 * np.random.default_rng(2).normal(size=arrays[1].shape)
    part, found = error(linear, arrays, seen)
    assert part < 0.1 * without
    assert "measured speeds of joints 1, 2, 3, 4, 5, 6" in found.how[0]
    assert found.findings == ()


def test_the_source_with_less_noise_is_used(linear, arrays):
    """Exact positions need no speeds; speeds so noisy that accelerations alone are better give only these."""
    t, q, _ = excited(linear, 1, DT)
    noisy = arrays[3] + 0.1 * np.random.default_rng(2).normal(size=q.shape)
    plain = filtered_measurements(twin.logs.torque_recording(t, q, arrays[2]), Filtering(10.0))
    best = filtered_measurements(twin.logs.torque_recording(t, q, arrays[2], qd=noisy), Filtering(10.0))
    for name in ("qd", "qdd", "qd_friction"):
        np.testing.assert_array_equal(getattr(best, name), getattr(plain, name))
    t, q = arrays[:2]
    plain = filtered_measurements(twin.logs.torque_recording(t, q, arrays[2]), Filtering(10.0))
    mixed = filtered_measurements(twin.logs.torque_recording(t, q, arrays[2], qd=noisy), Filtering(10.0))
    np.testing.assert_array_equal(mixed.qd, plain.qd)
    assert np.std(mixed.qdd - plain.qdd) > 0.1


@pytest.mark.parametrize("factor", [1.1, -1.0])
def test_speeds_of_another_scale_or_sign_are_not_used(arrays, factor):
    t, q, tau, qd = arrays
    plain, seen = (
        filtered_measurements(twin.logs.torque_recording(t, q, tau, qd=speeds), Filtering(10.0))
        for speeds in (None, factor * qd)
    )
    np.testing.assert_array_equal(seen.qd, plain.qd)
    np.testing.assert_array_equal(seen.qdd, plain.qdd)
    (finding,) = seen.findings
    assert (finding.name, finding.joints, finding.stops) == ("speeds", (1, 2, 3, 4, 5, 6), False)
    assert f"differ from those of the positions by up to {100 * abs(factor - 1):.0f} %" in finding.text


def test_speeds_are_read_in_their_unit_and_from_the_motors(linear, arrays, tmp_path):
    t, q, tau, qd = (values[:50] for values in arrays)
    N = linear.drives.motor_matrix
    names = [f"{what}{k}" for what in ("q", "tau") for k in range(1, 7)]
    names += [f"qd{k}[deg/s]" for k in range(1, 7)]
    rows = np.column_stack([t, q @ N.T, tau, np.rad2deg(qd @ N.T)])
    np.savetxt(tmp_path / "run.csv", rows, delimiter=",", header=",".join(["t", *names]), comments="")
    form = twin.logs.TableForm(motor_side="positions")
    found = twin.logs.read_torque_recording(tmp_path / "run.csv", linear, form)
    np.testing.assert_allclose(found.qd, qd, rtol=0, atol=1e-12)
    qd = qd.copy()
    qd[3, 1] = np.nan
    with pytest.raises(RecordingError, match="qd2 of sample 4 is nan"):
        twin.logs.torque_recording(t, q, tau, qd=qd)
