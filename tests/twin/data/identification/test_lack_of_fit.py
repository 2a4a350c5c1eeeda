"""Lack of fit and change with time: what the model leaves beside the noise, and what explains it."""

import numpy as np
import pytest

import twin
from scenarios.shell.command_line import main
from tests.support.identified_arms import excited, slides_as_it_starts
from twin.base.errors import RecordingError
from twin.data.identification import alternatives
from twin.data.identification.measurements import differences
from twin.data.logs.recordings.columns import header_options

pytestmark = pytest.mark.filterwarnings("ignore::twin.errors.IdentificationWarning")

DT = 0.004


def noisy(tau, seed=0):
    return tau + 0.01 * np.sqrt(np.mean(tau**2, axis=0)) * np.random.default_rng(seed).normal(size=tau.shape)


@pytest.fixture(scope="module")
def arm():
    """Three axes, whose fits are cheap."""
    return slides_as_it_starts(twin.load("youbot3"))


def swinging(seconds):
    """Return times and positions of three axes that swing with several frequencies."""
    t, rng = np.arange(0.0, seconds, DT), np.random.default_rng(3)
    phases = rng.uniform(0.0, 2.0 * np.pi, (3, 4))
    swings = [sum(np.sin((0.5 + 0.9 * k) * t + phase[k]) / (1 + k) for k in range(4)) for phase in phases]
    return t, 0.2 + 0.6 * np.stack(swings, axis=-1)


@pytest.fixture(scope="module")
def motion():
    return swinging(10.0)


def torques(arm, q):
    return twin.inverse_dynamics(arm, q, *differences(q, DT))


def later(change):
    """Return the damage of a change `(t, q, tau) -> (q, tau)` in the second half."""

    def damaged(t, q, tau):
        after = (t > t[len(t) // 2])[:, None]
        return t, *(np.where(after, new, old) for new, old in zip(change(t, q, tau), (q, tau), strict=True))

    return damaged


ONE = np.array([0.0, 1.0, 0.0])  # joint 2


@pytest.mark.parametrize(
    ("damaged", "name", "joints", "reason"),
    [
        (later(lambda t, q, tau: (q, tau + 0.2 * ONE * tau)), "changes", (2,), "gain of the torque of joint"),
        (later(lambda t, q, tau: (q, tau + ONE)), "changes", (2,), "zero of the torque of joint 2"),
        (later(lambda t, q, tau: (q + 0.2 * ONE, tau)), "changes", (2,), "position of joint 2 jumps by"),
        (lambda t, q, tau: (t, q, tau * (1.0 + 0.03 * t[:, None] * ONE)), "changes", (2,), "all the time"),
        (lambda t, q, tau: (t + 0.4 * np.maximum(t - 35 / 6, 0.0), q, tau), "changes", (), "the clock seems"),
        (lambda t, q, tau: (t, q, np.where(ONE, 3.0, tau)), "frozen", (2,), "torque of joint 2 is constant"),
        (lambda t, q, tau: (t, q * (1.0 - 2.0 * ONE), tau), "sign", (2,), "the position of joint 2 seems"),
    ],
)  # fmt: skip
def test_a_change_with_time_stops_and_names_what_changed(arm, motion, damaged, name, joints, reason):
    t, q = motion
    found = twin.identify(arm, twin.logs.torque_recording(*damaged(t, q, noisy(torques(arm, q)))))
    stop, *more = [one for one in found.findings if one.stops]
    assert not more, more
    assert (stop.name, stop.joints) == (name, joints)
    assert reason in stop.text
    if "would fall" in stop.text:
        assert float(stop.text.rpartition(" to ")[2].split()[0]) < 1.5  # noise is left


def test_a_change_that_no_alternative_explains_is_seen_by_fits_to_both_halves(arm):
    t, q = swinging(40.0)
    tau = torques(arm, q)
    tau = np.where(t[:, None] > 20.0, tau * [1.5, 1.0, 0.6] + [0.0, 2.0, 0.0], tau)
    found = twin.identify(arm, twin.logs.torque_recording(t, q, noisy(tau)))
    (stop,) = [one for one in found.findings if one.stops]
    assert (stop.name, stop.joints) == ("changes", (3,))
    assert "times those of fits to its halves" in stop.text


def test_clean_and_quantised_torques_have_no_finding(arm, motion):
    t, q = motion
    tau = torques(arm, q)
    count = 0.02 * np.max(np.abs(tau), axis=0)
    for seen in (noisy(tau), tau + 30.0 * (noisy(tau) - tau), np.round(tau / count) * count):
        found = twin.identify(arm, twin.logs.torque_recording(t, q, seen))
        assert found.findings == ()
        assert np.all(found.unfiltered.rms < 1.6 * found.noise)
        assert found.growth is None or np.max(found.growth) < 1.5


def test_what_no_alternative_explains_is_a_note(arm, motion):
    """A torque that the model lacks: the residual beside the noise, with a status of 0."""
    t, q = motion
    tau = torques(arm, q)
    lacking = tau + 0.1 * np.std(tau, axis=0) * np.sin(9.0 * q[:, ::-1])
    found = twin.identify(arm, twin.logs.torque_recording(t, q, noisy(lacking)))
    (lack,) = [one for one in found.findings if one.name == "lack"]
    assert not lack.stops
    assert "the model does not explain the torque of joint" in lack.text
    assert "% of it, its noise 0.9" in lack.text


@pytest.mark.parametrize(
    ("robot", "mounting", "order", "name", "reason"),
    [
        ("irb1600", "floor", (0, 1, 2, 3, 4, 5), "arm", "of another arm (--robot irb140)"),
        ("irb140", "inverted", (0, 1, 2, 3, 4, 5), "mounting", "with another mounting (--mounting floor)"),
        ("irb140", "floor", (0, 1, 2, 5, 4, 3), "swapped", "the torques of joints 4 and 6 seem to be"),
    ],
)  # fmt: skip
def test_other_arms_and_exchanged_axes_are_named(irb140, monkeypatch, robot, mounting, order, name, reason):
    monkeypatch.setattr(alternatives, "robot_names", lambda: ("irb140",))  # the others take seconds
    t, q, tau = excited(slides_as_it_starts(irb140), 1, DT)
    recording = twin.logs.torque_recording(t, q[:, order], noisy(tau)[:, order])
    found = twin.identify(
        twin.load(robot).with_drives("rigid").mounted(mounting), recording, min_speed=0.0, deviations="white"
    )
    (stop,) = [one for one in found.findings if one.stops]
    assert stop.name == name
    assert reason in stop.text


def test_a_slow_recording_says_which_inertia_it_does_not_determine(arm, motion):
    t, q = motion
    slow = np.mean(q, axis=0) + 0.5 * (q - np.mean(q, axis=0))
    qd, qdd = differences(slow, 5 * DT)  # five times as slow
    tau = noisy(twin.inverse_dynamics(arm, slow, qd, qdd), 1)
    found = twin.identify(arm, twin.logs.torque_recording(5.0 * t, slow, tau))
    (vague,) = [one for one in found.findings if one.name == "undetermined"]
    assert not vague.stops
    assert "not determined by this recording" in vague.text
    assert "record faster motions, or keep the rotors of the file" in vague.text


@pytest.mark.parametrize(
    ("first", "count", "said"),
    [(0, 3, "numbered from 0 to 2, expected 1 to 3"), (1, 4, "Achse4_deg match"), (1, 3, None)],
)
def test_numbers_of_columns_beside_a_pattern(arm, tmp_path, first, count, said):
    names = ["t", *(f"Achse{k}_deg" for k in range(first, first + count)), "tau1", "tau2", "tau3"]
    path, rows = tmp_path / "run.csv", np.outer(np.arange(20.0), np.ones(len(names)))
    np.savetxt(path, rows, delimiter=",", header=",".join(names), comments="")
    form = twin.logs.TableForm(header_options("q*=Achse*_deg"))
    if first == 0:
        with pytest.raises(RecordingError, match=said):
            twin.logs.read_torque_recording(path, arm, form)
    else:
        findings = twin.logs.read_torque_recording(path, arm, form).findings
        assert [said in one.text for one in findings] == ([True] if said else [])


def test_a_validation_is_judged_without_a_file_that_is_written(arm, motion, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    t, q = motion
    names = ",".join(["t", *(f"{what}{k}" for what in ("q", "tau") for k in (1, 2, 3))])
    for name, robot in (
        ("fit.csv", arm.with_payload(twin.Payload(3.0, (0.0, 0.0, 0.1)))),
        ("other.csv", arm),
    ):
        rows = np.column_stack([t, q, noisy(torques(robot, q))])
        np.savetxt(name, rows, delimiter=",", header=names, comments="", fmt="%.9g")
    assert main(["identify", "fit.csv", "--robot", "youbot3", "--validate", "other.csv"]) == 1
    printed = capsys.readouterr()
    assert "STOP worse: on the validation recordings" in printed.out
    assert "noise, %" in printed.out
