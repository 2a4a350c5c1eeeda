"""The mirror and logs of streams without a network: expected torques, payloads, alarms; times and gaps."""

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import twin
from tests.support import egm_streams as streams
from tests.support.egm_streams import CYCLE, TORQUE_AGE, messages, model_of, reports_of, without
from twin.abb.egm import Mirror, RobotMessage, StreamLog
from twin.abb.egm.mirror.expectation import Expectation, RunningPayload
from twin.base.errors import EgmError, RecordingError
from twin.data.identification.payload import identify_payload


def mirror_of(robot, **settings):
    """Return a mirror with the torque age of these streams."""
    return Mirror(robot, torque_age=TORQUE_AGE, **settings)


@pytest.fixture(scope="module")
def log():
    """Provide a log of 10 s with a payload of 3 kg."""
    return streams.excited_log(10.0)


@pytest.fixture(scope="module")
def stream(log):
    return messages(log)


@pytest.fixture(scope="module")
def unloaded(log, stream):
    """Provide a mirror whose model lacks the payload, and its reports of 5 s."""
    mirror = mirror_of(model_of(log), alarm=30.0)
    return mirror, reports_of(mirror, stream[:1250])


def test_mirror_estimates_unknown_payload_of_3_kg(log):
    reports = reports_of(mirror_of(model_of(log)), messages(log, noise=1e-4))
    assert len(reports) == 10
    for report in reports:
        assert report.payload.mass_known
        assert report.payload.mass == pytest.approx(3.0, rel=0.02)  # the required accuracy is 5 % after 20 s
    found = reports[-1].payload
    # Half a percent is the engine's friction, which acts half a step after the instant of the torque.
    assert found.mass == pytest.approx(3.0, rel=0.006)
    assert found.centre_known
    np.testing.assert_allclose(found.com, streams.TRUE_PAYLOAD[1:4], atol=1e-3)
    np.testing.assert_allclose(found.values[4:], streams.TRUE_PAYLOAD[4:], atol=2e-3)
    assert 1e-4 < found.deviations[0] < 5e-3


def test_reports_of_a_correct_model_have_small_residuals_at_their_times(log, stream):
    mirror = mirror_of(log.robot, alarm=[2.0, 2.0, 2.0, 1.0, 1.0, 1.0])
    for k, message in enumerate(stream[:1500]):
        report = mirror.take(message)
        if report is not None:
            place = round(report.t / CYCLE)
            assert report.t == pytest.approx(place * CYCLE, abs=1e-9)
            np.testing.assert_allclose(report.q, log.q[2 * place], atol=2e-5)
            assert mirror.lag - 1e-9 <= (k - place) * CYCLE < mirror.lag + 0.02
            last = report
    assert mirror.lag == pytest.approx(0.212)
    assert abs(last.payload.mass) < 0.02
    assert not mirror.alarms
    saved = mirror.log()
    moves = saved.arrays["friction_open"] == 0.0
    assert np.all(np.mean(moves, axis=0) > 0.4)
    off = np.sqrt(np.mean(saved.arrays["residual_torque"] ** 2, axis=0, where=moves))
    np.testing.assert_array_less(off, 0.01 * np.sqrt(np.mean(log.tau**2, axis=0)))
    places = np.round(saved.arrays["stream_time"] / CYCLE).astype(int)
    np.testing.assert_array_equal(saved.q_ref, log.q_ref[2 * places])
    residual = saved.tau - saved.arrays["expected_torque"]
    np.testing.assert_allclose(residual, saved.arrays["residual_torque"])
    # speeds of the engine are half a step older
    np.testing.assert_allclose(saved.qd, (log.qd[2 * places] + log.qd[2 * places + 1]) / 2, atol=3e-3)


def test_payload_is_estimated_despite_lost_and_reordered_messages(log, rng):
    stream = messages(log, noise=1e-4)[:1000]
    lost = np.flatnonzero(rng.random(len(stream) - 1) < 0.1) + 1
    lost = lost[lost < len(stream) - 1]
    came = without(stream, lost)
    came.insert(300, came[299])
    came[600], came[601] = came[601], came[600]
    mirror = mirror_of(model_of(log))
    reports = reports_of(mirror, came)
    counts = mirror.counts
    assert (counts.lost, counts.doubled, counts.out_of_order, counts.restarts) == (len(lost), 1, 1, 0)
    assert counts.messages == len(stream) - len(lost) - 1
    assert reports[-1].payload.mass == pytest.approx(3.0, rel=0.01)
    assert 0 < reports[0].counts.lost < len(lost) / 3 < reports[-1].counts.lost


def test_true_period_is_measured(log):
    """A nominal period would cause errors of 1 and 2 % in speeds and accelerations."""
    stream = messages(log, period=4.039e-3)[:800]
    silent = [replace(message, time=None) for message in stream]
    for sent, precision in ((stream, 1e-6), (silent, 1e-3 / 3.0)):  # 1 ms in 3 s
        mirror = Mirror(log.robot)
        reports_of(mirror, sent)
        assert mirror.period == pytest.approx(4.039e-3, rel=precision)


def test_stream_continues_across_number_wrap_and_zero_clock(log):
    stream = [replace(message, time=0.0) for message in messages(log, first=2**32 - 700)[:1000]]
    stream = streams.renumbered(stream, 2**32 - 700, 2**32 - 4000)
    stream = [replace(m, seqno=m.seqno % 2**32, tm=m.tm % 2**32) for m in stream]
    mirror = mirror_of(model_of(log))
    reports = reports_of(mirror, stream)
    assert mirror.counts.messages == 1000
    assert (mirror.counts.lost, mirror.counts.restarts) == (0, 0)
    assert mirror.period == pytest.approx(CYCLE)
    assert reports[-1].payload.mass == pytest.approx(3.0, rel=0.01)


def test_mirror_follows_a_restarted_robot(log, stream):
    """The numbers restart; the clock restarts only with the controller.  An early restart is no late one."""
    mirror = mirror_of(model_of(log))
    first = reports_of(mirror, stream[:1000])
    second = reports_of(mirror, streams.renumbered(stream[1000:2000], 0, 0))
    assert (mirror.counts.restarts, mirror.counts.lost) == (1, 0)
    assert first[-1].t < second[0].t < first[-1].t + 2.5
    assert 6.0 < second[-1].t < 8.0
    assert second[-1].payload.mass == pytest.approx(3.0, rel=0.01)
    assert max(np.max(report.residual_rms) for report in second) < 80  # no jump at the restart
    early = Mirror(log.robot)
    reports_of(early, stream[:60] + streams.renumbered(stream[:60], stream[30].seqno, 60_000))
    counts = early.counts
    assert (counts.restarts, counts.doubled, counts.out_of_order, counts.lost) == (1, 0, 0, 0)
    assert counts.messages == 120


def test_lost_messages_are_interpolated_linearly(log, stream, rng):
    stream = stream[:500]
    lost = 1 + rng.permutation(len(stream) - 2)[:50]
    expected = []
    for part in (stream, without(stream, lost)):
        mirror = Mirror(log.robot)
        reports_of(mirror, part)
        expected.append(mirror.log().arrays["expected_torque"])
    assert np.all(np.abs(expected[1] - expected[0]).max(axis=0) < 1.0)


def test_gaps_and_pauses_are_not_interpolated(log, stream):
    """Motion during a silence of 3 s does not count as a jump, where no numbers are missing."""
    gap = without(stream[:1000], range(500, 600))
    pause = stream[:500] + [replace(message, seqno=message.seqno - 750) for message in stream[1250:1750]]
    for given, lost, end in ((gap, 100, 3.7), (pause, 0, 3.7)):
        mirror = mirror_of(log.robot, alarm=5.0)
        reports_of(mirror, given)
        assert mirror.counts.lost == lost
        assert not mirror.alarms
        times = mirror.log().arrays["stream_time"]
        assert np.max(np.diff(times)) > 0.4
        assert times[-1] > end


def test_reports_without_torques_have_the_same_expected_ones(log, stream, unloaded):
    """Torques are reported from their first message on."""
    silent = [replace(message, tau=None) for message in stream[:600]]
    mirror = mirror_of(model_of(log), alarm=1.0)
    reports = reports_of(mirror, silent)
    assert len(reports) == 2
    for report, other in zip(reports, unloaded[1], strict=False):
        assert report.reported is report.payload is report.residual is None
        np.testing.assert_array_equal(report.expected, other.expected)
        assert not report.alarms
    assert np.isnan(mirror.log().tau).all()
    reports = [report for report in reports_of(mirror, stream[600:1250]) if report.reported is not None]
    assert len(reports) > 1
    assert all(np.isfinite(report.residual_rms).all() for report in reports)


def test_static_friction_raises_no_alarm_and_yields_no_payload():
    """A joint at rest may have any torque up to its static friction."""
    robot = streams.irb140("rigid")
    q = np.array([0.1, 0.4, -0.2, 0.3, 0.5, 0.1])
    gravity = twin.gravity_torque(robot, q)
    mirror = Mirror(robot, alarm=2.0)
    report = reports_of(mirror, streams.at_rest(robot, q, gravity + 0.99 * robot.drives.static))[-1]
    np.testing.assert_allclose(report.expected, gravity, atol=1e-9)
    np.testing.assert_allclose(report.residual_rms, 0.99 * robot.drives.static)
    assert np.all(report.friction_open >= robot.drives.static - 1e-9)
    assert not mirror.alarms
    assert report.payload is None
    push = np.array([0.0, 60.0, 0.0, 0.0, 0.0, 0.0])
    reports_of(pushed := Mirror(robot, alarm=2.0), streams.at_rest(robot, q, gravity + push))
    assert [alarm.joint for alarm in pushed.alarms] == [2]
    assert pushed.alarms[0].residual == pytest.approx(60.0)
    assert pushed.alarms[0].beyond == pytest.approx(60.0 - robot.drives.static[1])


def test_frictionless_arm_at_rest_determines_mass_but_not_centre():
    """At rest, torques do not depend on the vertical position of the mass."""
    robot = streams.irb140()
    q = np.array([0.0, 0.3, 0.2, 0.0, 0.6, 0.0])
    loaded = robot.with_payload(twin.Payload(3.0, (0.02, -0.01, 0.06)))
    report = reports_of(Mirror(robot), streams.at_rest(robot, q, twin.gravity_torque(loaded, q)))[-1]
    assert report.payload.mass_known
    assert report.payload.mass == pytest.approx(3.0, abs=3 * report.payload.deviations[0] + 0.05)
    assert not report.payload.centre_known


def test_model_with_another_payload_or_torque_age_estimates_the_difference(log, stream, unloaded):
    """The heavy model has a payload of 6 kg.  In fast motion one cycle of age makes some percent."""
    heavy = log.robot.with_payload(twin.Payload(6.0, streams.TRUE_PAYLOAD[1:4]))
    assert reports_of(mirror_of(heavy), stream[:1250])[-1].payload.mass == pytest.approx(-3.0, rel=0.02)
    right = unloaded[1][-1].payload
    early = reports_of(Mirror(model_of(log), torque_age=0.0), stream[:1250])[-1].payload
    assert 0.02 < abs(early.mass - right.mass) < 0.1
    assert early.deviations[0] > 2 * right.deviations[0]


def test_alarm_is_raised_once_and_ends(unloaded):
    mirror, reports = unloaded
    raised = [alarm for report in reports for alarm in report.alarms]
    assert raised == mirror.alarms[: len(raised)]
    assert {alarm.joint for alarm in raised} <= {1, 2, 3}
    assert 4 < len(raised) < 40
    for alarm in raised:
        assert alarm.beyond > alarm.limit == 30.0
        assert abs(alarm.residual) >= alarm.beyond
    assert all(first.t <= second.t for first, second in pairwise(raised))


def test_alarm_has_positive_limits(irb140):
    shares = [28.2, 75.5, 33.3, 4.5, 6.0, 3.8]
    for alarm, limits in ((20, [20.0] * 6), ("1,2,3,4,5,6", range(1, 7)), ("10%", shares)):
        np.testing.assert_allclose(Mirror(irb140, alarm=alarm).limits, limits)
    for alarm in (0, "x", "1,2", "nan", "-3%", np.ones((2, 3))):
        with pytest.raises(EgmError, match="expected as alarm one positive limit in N m, 6 limits"):
            Mirror(irb140, alarm=alarm)


def test_mirror_rejects_streams_that_it_cannot_follow(irb140):
    with pytest.raises(EgmError, match="robot has 7 joints, the model 'irb140' has 6: choose the"):
        Mirror(irb140).take(RobotMessage(0, 0, np.zeros(7), np.zeros(7)))
    slow = [RobotMessage(k, 200 * k, np.zeros(6), np.zeros(6)) for k in range(50)]
    with pytest.raises(EgmError, match=r"sends every 0\.2 s: expected a period of 0\.1 s or less"):
        reports_of(Mirror(irb140), slow)
    with pytest.raises(EgmError, match="no data to log"):
        Mirror(irb140).log()
    with pytest.raises(ValueError, match="expected a call within `with Mirror"):
        next(Mirror(irb140).reports())
    broken = Mirror(irb140)
    assert broken.take(RobotMessage(0, 0, np.full(6, np.nan), np.zeros(6))) is None
    assert broken.counts.malformed == 1


def test_lateness_is_relative_to_the_fastest_message(irb140):
    """This holds also for clocks that drift by 0.1 ms per second."""
    stream = streams.at_rest(irb140, np.zeros(6), None, count=2000)
    on_the_way = np.full(len(stream), 0.3)
    on_the_way[700] += 0.007
    on_the_way[:300] += 0.001  # slower than the later messages
    arrivals = [(1 + 1e-4) * CYCLE * k + delay + 55.0 for k, delay in enumerate(on_the_way)]
    reports = reports_of(Mirror(irb140), stream, arrivals)
    largest = [report.lateness.largest for report in reports]
    assert max(largest) == pytest.approx(0.007, abs=2e-3)
    assert min(largest) > 0.0
    assert sum(late > 0.003 for late in largest) == 1
    assert max(largest[4:]) < 1.2e-3  # at most the drift of eleven seconds
    assert reports[2].lateness.rms < 1e-3


def test_memory_is_bounded_and_messages_are_processed_fast(log, stream, monkeypatch):
    """This holds also where the clock of the robot stands."""
    monkeypatch.setattr("twin.abb.egm.mirror.mirror.BLOCK", 50)
    monkeypatch.setattr("twin.abb.egm.mirror.mirror.BLOCKS", 3)
    mirror = mirror_of(model_of(log), alarm=1.0)
    began = time.process_time()
    reports_of(mirror, stream[:1000])
    assert (time.process_time() - began) / 1000 < 5e-4
    saved = mirror.log()
    assert 150 < len(saved.t) <= 200
    assert saved.arrays["stream_time"][-1] == pytest.approx(4.0 - mirror.lag, abs=0.03)
    monkeypatch.setattr("twin.abb.egm.mirror.mirror.MAX_ROWS", 20)
    stopped = mirror_of(model_of(log))
    assert reports_of(stopped, [replace(message, tm=0, time=None) for message in stream[:500]])
    assert len(stopped._rows) <= 20


def test_payload_estimate_forgets_old_data(log, stream):
    """The estimate of a removed payload vanishes after some horizons."""
    expectation = Expectation(model_of(log), CYCLE, TORQUE_AGE)
    rows = [row for k, m in enumerate(stream[:1000]) if (row := expectation.take(k, m.q, m.q, m.tau))]
    running = RunningPayload(model_of(log), 50.0, 1.0, horizon=0.4)
    for row in rows:
        running.take(row)
    assert running.estimate().mass == pytest.approx(3.0, rel=0.02)
    for row in rows:
        running.take(row._replace(reported=row.expected))
    assert abs(running.estimate().mass) < 0.01


@pytest.fixture(scope="module")
def brief():
    return streams.excited_log(5.0)


@pytest.fixture(scope="module")
def sent(brief):
    return messages(brief)


def record(brief, sent, **settings):
    made = StreamLog(brief.robot.with_payload(None), torque_age=TORQUE_AGE, **settings)
    for message in sent:
        made.take(message)
    return made


def test_log_contains_the_stream_at_even_times(brief, tmp_path):
    sent = messages(brief, period=4.032e-3)
    made = record(brief, sent).log()
    assert len(made.t) == len(sent)
    np.testing.assert_allclose(np.diff(made.t), 4.032e-3, rtol=1e-6)
    np.testing.assert_array_equal(made.q, [message.q for message in sent])
    np.testing.assert_array_equal(made.q_ref, [message.q_planned for message in sent])
    assert made.steps_per_period > 1, "samples do not count as engine steps"
    made.save(tmp_path / "stream.npz")
    assert twin.Log.load(tmp_path / "stream.npz").identical(made)


def test_log_speeds_match_the_arm(brief, sent):
    made = record(brief, sent).log()
    assert made.t[1] == pytest.approx(CYCLE)
    qd = (brief.qd[:-1] + brief.qd[1:])[::2][
        : len(made.t) - 1
    ] / 2  # speeds of the engine are half a step older
    np.testing.assert_allclose(made.qd[:-1], qd, atol=5e-3)
    np.testing.assert_allclose(made.qd_ref[:-1], qd, atol=5e-3)
    np.testing.assert_allclose(made.qdd_ref[20:-20], brief.qdd_ref[::2][20:-20], atol=0.5)
    cycles = brief.tau[:-1].reshape(-1, 2, 6).mean(axis=1)
    np.testing.assert_allclose(made.tau[1:-1], (cycles[:-1] + 3 * cycles[1:]) / 4, atol=1e-12)


def test_lost_messages_are_filled_counted_and_limited(brief, sent, rng):
    lost = 1 + rng.permutation(len(sent) - 2)[:50]
    made = record(brief, without(sent, lost))
    filled = made.log()
    assert made.counts.lost == 50
    np.testing.assert_array_equal(np.flatnonzero(filled.arrays["filled"]), np.sort(lost))
    np.testing.assert_allclose(filled.q, [message.q for message in sent], atol=2e-6)
    np.testing.assert_array_equal(filled.arrays["stream"], [len(sent) - 50, 50, 0, 0])
    many = without(sent, 1 + rng.permutation(len(sent) - 2)[:100])
    with pytest.raises(EgmError, match=r"100 of 1251 messages were lost: a log .* at most 5%"):
        record(brief, many).log()


def test_log_without_torques_is_rejected_by_identification(brief):
    made = record(brief, messages(brief, torque=False)[:300])
    assert not made.torques
    assert np.isnan(made.log().tau).all()
    with pytest.raises(RecordingError, match="tau"):
        identify_payload(made.robot, made.log())


def test_recording_ends_after_a_duration_a_restart_or_a_long_gap(brief, sent):
    made = record(brief, sent, duration=2.0)
    assert made.ended == "the duration of 2 s is complete"
    assert made.log().t[-1] == pytest.approx(2.0)
    twice = record(brief, sent[:300] + sent[290:300])
    assert (twice.ended, twice.counts.doubled) == ("", 10)
    numbered = [replace(m, seqno=k, tm=m.tm) for k, m in enumerate(sent[300:])]
    anew = record(brief, sent[:300] + numbered)
    assert anew.ended == "the robot restarted, and a log contains only one stream"
    assert len(anew.log().t) == 300
    broken = record(brief, without(sent, range(500, 560)))
    assert broken.ended == "no messages for 0.244 s; a log fills gaps of at most 0.1 s"
    assert (broken.broke_off, len(broken.log().t)) == (True, 500)
    short = record(brief, without(sent, range(500, 520)))
    assert (short.ended, short.broke_off, len(short.log().t)) == ("", False, len(sent))
    # A jump of the numbers does not change the period.
    jump = record(brief, [*sent[:500], replace(sent[499], seqno=sent[499].seqno + 2_000_000)])
    assert jump.ended
    # 2 s by a clock of some 1e9 s, whose float tells 0.2 us.
    np.testing.assert_allclose(np.diff(jump.log().t), CYCLE, rtol=1e-6)


def test_invalid_stream_raises_egm_error(brief, sent):
    other = replace(sent[0], q=np.zeros(7), q_planned=np.zeros(7))
    for call, sentence in (
        (record(brief, sent[:3]).log, "expected at least 10 robot messages for a log, got 3"),
        (lambda: StreamLog(brief.robot, duration=0.0), "a duration above 0 s and up to 3600 s, got 0 s"),
        (lambda: StreamLog(brief.robot).take(other), "robot has 7 joints, the model 'irb140' has 6"),
        (lambda: StreamLog(brief.robot, torque_age=1.5), "an age of reported torques of 0 to 1 cycles"),
    ):
        with pytest.raises(EgmError, match=sentence):
            call()
