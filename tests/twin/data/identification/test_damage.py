"""Damaged recordings of a simulated IRB 140, with 1 % of noise in its torques: each is cured, or refused."""

import re

import numpy as np
import pytest

import twin
from scenarios.shell.command_line import main
from tests.support import damage
from tests.support.identified_arms import excited, slides_as_it_starts
from twin.data.identification.alternatives import alternatives, percent_of
from twin.data.identification.measurements import cured_parts, differences, filtered_measurements
from twin.data.identification.torque_model import TorqueModel
from twin.data.logs.recordings.torque_recording import with_even_times

pytestmark = [
    pytest.mark.slow("fits recordings"),
    pytest.mark.filterwarnings("ignore::twin.errors.IdentificationWarning"),
]

DT = 0.004
EVERY = (1, 2, 3, 4, 5, 6)
FAST = {"min_speed": 0.0, "deviations": "white"}


@pytest.fixture(scope="module")
def linear(irb140):
    return slides_as_it_starts(irb140)


@pytest.fixture(scope="module")
def arrays(linear):
    t, q, tau = excited(linear, 1, DT)
    size = 0.01 * np.sqrt(np.mean(tau**2, axis=0))
    return t, q, tau + size * np.random.default_rng(0).normal(size=tau.shape)


@pytest.fixture(scope="module")
def error(linear):
    """Function of a result: the largest error of a joint's fitted torques without noise, in percent."""
    _, q, tau = excited(linear, 1, DT)
    some = slice(5, -5, 5)
    qd, qdd = (rates[some] for rates in differences(q, DT))
    model = TorqueModel(linear)
    Y = model.regressor(q[some], qd, qdd, qd)[..., model.base.columns]

    def largest(found):
        assert found.model.base.symbols == model.base.symbols
        rest = np.linalg.norm(Y @ found.beta - tau[some], axis=0)
        return 100.0 * np.max(rest / np.linalg.norm(tau[some], axis=0))

    return largest


def damaged(arrays, how):
    return twin.logs.torque_recording(*how(*arrays, np.random.default_rng(1)), name="run.csv")


def identified(linear, arrays, how, **settings):
    return twin.identify(linear, damaged(arrays, how), **settings)


GEAR = 1 / 127.0


@pytest.mark.parametrize(
    ("how", "name", "joints", "reason"),
    [
        (damage.scaled(6, -1.0), "sign", (6,), "have the other sign, with which friction brakes"),
        (damage.scaled(None, -1.0), "sign", (), "all torques seem to have the other sign"),
        (damage.scaled(1, GEAR), "unit", (1,), "is it that of the motor, before the gear?"),
        (damage.scaled(4, 0.12), "unit", (4,), "by about 0.12; is it a current"),
        (damage.swapped("q", 1, 2), "swapped", (1, 2), "the positions of joints 1 and 2 seem to be swapped"),
        (lambda t, q, tau, rng: (t, q * [1, 1, -1, 1, 1, 1], tau), "sign", (3,), "the position of joint 3"),
        (damage.swapped("tau", 5, 6), "swapped", (5, 6), "the torques of joints 5 and 6 seem to be swapped"),
        (damage.clipped(3, 0.5), "clipped", (3,), "the recording saturates"),
    ],
)
def test_a_recording_that_is_wrong_is_refused_with_its_reason(linear, arrays, how, name, joints, reason):
    found = identified(linear, arrays, how, **FAST)
    stops = [one for one in found.findings if one.stops]
    assert {one.name for one in stops} == {name}
    assert stops[0].joints == joints
    assert any(reason in one.text for one in stops)


def test_what_is_seen_without_a_model(linear, arrays):
    """Rows that stood still stop a result; wraps and spikes of the positions are removed."""
    for how, name, joints, reason in (
        (damage.frozen(("q", "tau"), EVERY), "frozen", EVERY, "stood still while the arm moved"),
        (damage.frozen(("tau",), (3,)), "frozen", (3,), "the recording of the torque stood still"),
        (damage.repeated, "repeated", EVERY, "rows were recorded faster than positions"),
    ):
        findings = cured_parts(damaged(arrays, how), linear)[1]
        (stop,) = [one for one in findings if one.stops]
        assert (stop.name, stop.joints) == (name, joints)
        assert reason in stop.text
    for how, name, joint in (
        (damage.wraps(6), "wrapped", 6),
        (damage.spikes("q", 5, 0.005, 0.3), "spikes", 5),
    ):
        (part,), findings = cured_parts(damaged(arrays, how), linear)
        assert [(one.name, one.joints, one.stops) for one in findings] == [(name, (joint,), False)]
        np.testing.assert_allclose(part.q, arrays[1], rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("how", "findings", "settings"),
    [
        (lambda t, q, tau, rng: (t, q, tau), [], {}),
        (damage.spikes("tau", 2, 0.01, 5.0), [("spikes", (2,), False)], {}),
        (damage.late(0.006), [("late", (), False)], {"delay": "auto"}),
        (damage.stretched, [("uneven", (), False)], {}),
        (damage.gap, [("gap", (), False)], {}),
    ],
)
def test_a_recording_that_can_be_cured_has_a_note(linear, arrays, error, how, findings, settings):
    found = identified(linear, arrays, how, **settings)
    assert [(one.name, one.joints, one.stops) for one in found.findings] == findings
    assert error(found) < 0.6


@pytest.mark.parametrize(
    ("how", "said", "off"),
    [
        (damage.uneven, ": interpolated, every", 1e-6),
        (damage.wrongly_stamped, "smoother with even steps", 1e-3),
    ],
)
def test_the_positions_decide_whether_stamps_are_right(arrays, how, said, off):
    even, (found,) = with_even_times(damaged(arrays, how))
    assert said in found.text
    inside = slice(10, -10)
    expected = damage.interpolated(arrays[0], arrays[1], even.t[inside])
    np.testing.assert_allclose(even.q[inside], expected, rtol=0, atol=off)


def test_a_torque_is_no_better_for_being_smaller(linear, arrays):
    """Torques that are all in another unit fit as before; one of them alone does not fit the others."""
    measured = filtered_measurements(twin.logs.torque_recording(*arrays))
    other = alternatives(
        TorqueModel(linear), [measured], lambda one, at, _: np.repeat(one.tau[at][:, None], 6, axis=1)
    )
    percent = percent_of(*other.fit(np.eye(6)))
    for factor in (1e-3, 1e3):
        np.testing.assert_allclose(percent_of(*other.fit(factor * np.eye(6))), percent, rtol=1e-6)
        alone = np.diag(np.where(np.arange(6) == 3, factor, 1.0))
        assert np.sum(np.log(percent_of(*other.fit(alone)) / percent)) > 1.0


def test_a_delay_has_its_deviation(linear, arrays):
    found = identified(linear, arrays, damage.late(0.02), **FAST)
    (stop,) = [one for one in found.findings if one.stops]
    assert stop.name == "late"
    assert re.search("20.* ms after the positions: --delay auto corrects it", stop.text)
    assert abs(found.delay.value - 0.02) < 3 * found.delay.deviation + 1e-3
    corrected = identified(linear, arrays, damage.late(0.02), delay=0.02, **FAST)
    assert abs(corrected.delay.value) < 3 * corrected.delay.deviation
    assert corrected.findings == ()


def test_too_little_motion_of_a_joint_names_its_parameters(linear, arrays):
    t, q, _ = arrays
    q = np.mean(q, axis=0) + (q - np.mean(q, axis=0)) * np.array([1, 1, 1, 1, 0.006, 1])
    tau = twin.inverse_dynamics(linear, q, *differences(q, DT))
    size = 0.01 * np.sqrt(np.mean(tau**2, axis=0))
    tau = tau + size * np.random.default_rng(0).normal(size=tau.shape)
    found = twin.identify(linear, twin.logs.torque_recording(t, q, tau), **FAST)
    (still,) = [one for one in found.findings if one.stops]
    assert (still.name, still.joints) == ("still", (5,))
    assert "not determined by this recording; let it turn back and forth" in still.text


def test_nothing_is_written_unless_a_finding_is_accepted(linear, arrays, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    t, q, tau = damage.lost(*arrays, np.random.default_rng(1))
    names = ",".join(["t", *(f"{what}{k}" for what in ("q", "tau") for k in range(1, 7))])
    rows = np.column_stack([t, q, tau])
    np.savetxt("run.csv", rows, delimiter=",", header=names, comments="", fmt="%.9g")
    words = ["identify", "run.csv", "--robot", "irb140", "--out", "found.toml", "--min-speed", "0"]
    words += ["--cutoff", "10", "--deviations", "white"]
    assert main([*words, "--look", "look.png"]) == 1
    printed = capsys.readouterr()
    assert "STOP lost: some " in printed.out
    assert "found.toml was not written" in printed.err
    assert "add --accept lost" in printed.err
    assert not (tmp_path / "found.toml").exists()
    assert (tmp_path / "look.png").stat().st_size > 10_000
    assert main([*words, "--accept", "lost"]) == 0
    assert (tmp_path / "found.toml").exists()
    assert main([*words, "--accept", "nothing"]) == 2
    assert "--accept nothing: expected a finding, one of sign, unit" in capsys.readouterr().err
