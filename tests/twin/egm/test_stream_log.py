"""Stream logs: even times, filled gaps, and identification from them."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.egm_streams import CYCLE, TORQUE_AGE, excited_log, messages, without
from twin.egm import StreamLog
from twin.errors import EgmError, RecordingError
from twin.identification.payload import identify_payload


@pytest.fixture(scope="module")
def log():
    return excited_log(5.0)


@pytest.fixture(scope="module")
def stream(log):
    return messages(log)


def record(log, stream, **settings):
    made = StreamLog(log.robot.with_payload(None), torque_age=TORQUE_AGE, **settings)
    for message in stream:
        made.take(message)
    return made


def test_log_contains_the_stream_at_even_times(log, tmp_path):
    stream = messages(log, period=4.032e-3)
    made = record(log, stream).log()
    assert len(made.t) == len(stream)
    np.testing.assert_allclose(np.diff(made.t), 4.032e-3, rtol=1e-6)
    np.testing.assert_array_equal(made.q, [message.q for message in stream])
    np.testing.assert_array_equal(made.q_ref, [message.q_planned for message in stream])
    assert made.steps_per_period > 1, "samples do not count as engine steps"
    made.save(tmp_path / "stream.npz")
    assert twin.Log.load(tmp_path / "stream.npz").identical(made)


def test_log_speeds_match_the_arm(log):
    made = record(log, messages(log)).log()
    assert made.t[1] == pytest.approx(CYCLE)
    qd = (log.qd[:-1] + log.qd[1:])[::2][: len(made.t) - 1] / 2  # speeds of the engine are half a step older
    np.testing.assert_allclose(made.qd[:-1], qd, atol=5e-3)
    np.testing.assert_allclose(made.qd_ref[:-1], qd, atol=5e-3)
    np.testing.assert_allclose(made.qdd_ref[20:-20], log.qdd_ref[::2][20:-20], atol=0.5)
    cycles = log.tau[:-1].reshape(-1, 2, 6).mean(axis=1)
    np.testing.assert_allclose(made.tau[1:-1], (cycles[:-1] + 3 * cycles[1:]) / 4, atol=1e-12)


def test_lost_messages_are_filled_counted_and_limited(log, rng):
    stream = messages(log)
    lost = 1 + rng.permutation(len(stream) - 2)[:50]
    made = record(log, without(stream, lost))
    filled = made.log()
    assert made.counts.lost == 50
    np.testing.assert_array_equal(np.flatnonzero(filled.arrays["filled"]), np.sort(lost))
    np.testing.assert_allclose(filled.q, [message.q for message in stream], atol=2e-6)
    np.testing.assert_array_equal(filled.arrays["stream"], [len(stream) - 50, 50, 0, 0])
    many = without(stream, 1 + rng.permutation(len(stream) - 2)[:100])
    with pytest.raises(EgmError, match=r"100 of 1251 messages were lost: a log .* at most 5%"):
        record(log, many).log()


def test_log_without_torques_is_rejected_by_identification(log):
    made = record(log, messages(log, torque=False))
    assert not made.torques
    assert np.isnan(made.log().tau).all()
    with pytest.raises(RecordingError, match="tau"):
        identify_payload(made.robot, made.log())


def test_recording_ends_after_a_duration_a_restart_or_a_long_gap(log, stream):
    made = record(log, stream, duration=2.0)
    assert made.ended == "the duration of 2 s is complete"
    assert made.log().t[-1] == pytest.approx(2.0)
    twice = record(log, stream[:300] + stream[290:300])
    assert (twice.ended, twice.counts.doubled) == ("", 10)
    anew = record(log, stream[:300] + [replace(m, seqno=k, tm=m.tm) for k, m in enumerate(stream[300:])])
    assert anew.ended == "the robot restarted, and a log contains only one stream"
    assert len(anew.log().t) == 300
    broken = record(log, without(stream, range(500, 560)))
    assert broken.ended == "no messages for 0.244 s; a log fills gaps of at most 0.1 s"
    assert (broken.broke_off, len(broken.log().t)) == (True, 500)
    short = record(log, without(stream, range(500, 520)))
    assert (short.ended, short.broke_off, len(short.log().t)) == ("", False, len(stream))
    # A jump of the numbers does not change the period.
    jump = record(log, [*stream[:500], replace(stream[499], seqno=stream[499].seqno + 2_000_000)])
    assert jump.ended
    # 2 s by a clock of some 1e9 s, whose float tells 0.2 us.
    np.testing.assert_allclose(np.diff(jump.log().t), CYCLE, rtol=1e-6)


def test_invalid_stream_raises_egm_error(log, stream):
    other = replace(stream[0], q=np.zeros(7), q_planned=np.zeros(7))
    for call, sentence in (
        (record(log, stream[:3]).log, "expected at least 10 robot messages for a log, got 3"),
        (lambda: StreamLog(log.robot, duration=0.0), "a duration above 0 s and up to 3600 s, got 0 s"),
        (lambda: StreamLog(log.robot).take(other), "robot has 7 joints, the model 'irb140' has 6: choose"),
        (lambda: StreamLog(log.robot, torque_age=1.5), "an age of reported torques of 0 to 1 cycles"),
    ):
        with pytest.raises(EgmError, match=sentence):
            call()
