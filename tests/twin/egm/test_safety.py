"""Arbitrary datagrams cause no crash and no memory growth, and the arm stays within its limits."""

import tracemalloc

import numpy as np

from tests.support.egm_wires import FaultyWire, Wire, run_session, session
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.robot.inbox import MAX_DATAGRAMS, QUEUE, Inbox
from twin.egm.wire.encoding import encode_sensor
from twin.egm.wire.messages import SensorMessage
from twin.robot.limits import folded

ROUGH = {"max_speed_deviation": 60.0, "ramp_time": 0.2, "comm_timeout": 0.5, "cond_time": 1000.0}
NOISE = 30_000


def restless(robot, last):
    """Return a client with random references, partly out of range, up to a given message."""
    random = np.random.default_rng(7)
    q = np.zeros(robot.n)

    def answer(message):
        cycle = message.tm // 4
        if cycle > last:
            return None
        if cycle % 50 == 0:
            over = 0.1 if random.random() < 0.1 and cycle < last - 100 else 0.0
            q[:] = random.uniform(robot.q_min - over, robot.q_max + over)
        return SensorMessage(cycle, q=q, qd=random.uniform(-2.0, 2.0, robot.n))

    return answer


def test_arm_stays_within_limits_with_faulty_network_and_random_bytes(robot):
    """30 % of the answers are lost, others duplicated, delayed or truncated; 30,000 datagrams are random."""
    noise = 60
    cycles = NOISE // noise + 100
    wire = FaultyWire(restless(robot, cycles), noise)
    with session(robot, wire, GuidanceSettings(**ROUGH), duration=0.004 * (cycles + 400), pause=0.1) as made:

        def calm():
            wire.noise = noise if made.inbox.cycle < cycles - 100 else 0
            return False

        made.serve(calm)
    log, counts = made.log(), made.done.counts
    assert log.violations() == ()
    assert np.all(np.isfinite(log.q))
    assert np.ptp(log.q, axis=0).min() > 0.1, "every joint moved"
    assert counts.broken > 0.9 * NOISE
    assert counts.taken > 0.2 * cycles
    assert min(counts.again, counts.old) > 10
    numbers = [fault.number for fault in made.done.faults]
    assert {50027, 41822} <= {*numbers}
    assert numbers[-1] == 41822
    kinds = [event.kind for event in made.done.events]
    assert 1 <= kinds.count("broken") <= kinds.count("waiting"), "at most one event per instruction"
    assert not log.qd_ref[-200:].any()
    assert np.ptp(log.q[-200:], axis=0).max() < 1e-9, "the arm rests"


def test_memory_does_not_grow(robot):
    """Memory is constant over time and datagrams once all bounded buffers are full."""
    wire = FaultyWire(restless(robot, 10**9), 5)
    sizes = []

    def stopping():
        wire.messages.clear()
        wire.datagrams.clear()
        if made.inbox.cycle in (60, 120):
            sizes.append(tracemalloc.get_traced_memory()[0])
        return len(sizes) == 2

    with session(robot, wire, GuidanceSettings(**ROUGH), keep=0.1, pause=0.02) as made:
        tracemalloc.start()
        try:
            made.serve(stopping)
        finally:
            tracemalloc.stop()
    log = made.log()
    assert (len(log.t), len(log.arrays["egm_t"])) == (100, 25)
    assert sizes[1] - sizes[0] < 20_000, sizes


class Pouring:
    """Channel with an unlimited supply of datagrams."""

    strangers, stranger = 0, None

    def __init__(self, datagrams):
        self.datagrams = list(datagrams)

    def receive(self, most):
        came, self.datagrams = self.datagrams[:most], self.datagrams[most:]
        return came


def inbox_of(count, **options):
    """Return an inbox with a supply of answers."""
    return Inbox(
        Pouring([encode_sensor(SensorMessage(k, q=np.zeros(6))) for k in range(count)]), 6, "joint", **options
    )


def number_of(answer):
    """Return the number of an answer or of a fault, and `None` without one."""
    return getattr(answer, "seqno", getattr(answer, "number", None))


def test_queue_is_bounded_and_drops_the_oldest_answer():
    kinds = []
    inbox = inbox_of(100, notify=lambda kind, sentence: kinds.append(kind))
    inbox.listen()
    assert inbox.counts.valid == MAX_DATAGRAMS == 64
    assert [inbox.next().seqno for _ in range(QUEUE)] == list(range(64 - QUEUE, 64))
    assert inbox.counts.dropped == 64 - QUEUE
    assert kinds == ["dropped"]
    assert inbox.next() is None
    inbox.listen()
    assert inbox.counts.valid == 100
    inbox.restart()
    assert inbox.next() is None
    assert (inbox.counts.dropped, inbox.counts.unused) == (64 - QUEUE, 36)


def test_fast_client_is_not_dropped_behind_a_lag():
    """With four answers per cycle and a lag of four cycles, delayed answers do not count for the queue."""
    inbox, taken = inbox_of(400, lag=4), []
    for _ in range(100):
        inbox.listen(4)
        taken.append(number_of(inbox.next()))
    assert taken[:5] == [None] * 4 + [0]
    assert np.all(np.diff(taken[4:]) >= 1)
    assert taken[-1] == 4 * 96 - QUEUE, "the oldest of the ten due answers"


def test_newest_answer_is_taken_after_a_late_cycle():
    """This holds for some cycles; otherwise the next answer is taken."""
    inbox, taken = inbox_of(20, lag=2), []
    for cycle in range(16):
        inbox.listen({3: 2, 4: 3, 12: 2}.get(cycle, 1))
        if cycle == 8:
            inbox.catch_up()
        taken.append(number_of(inbox.next()))
    assert taken == [None, None, 0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16]
    assert inbox.counts.skipped == 3


def test_answers_without_effect_are_queued_only_in_lockstep():
    """By the clock answers without effect are not queued; in lockstep they are."""
    first, second = (encode_sensor(SensorMessage(k, q=np.full(6, k))) for k in (1, 2))
    came = [first, first, second, first, b"\xff\xff", encode_sensor(SensorMessage(3, T=np.eye(4)))]
    for every, expected in ((False, [1, 2, 41826, None]), (True, [1, None, 2, None, 41826, None])):
        inbox = Inbox(Pouring(came), 6, "joint", every_answer=every)
        inbox.listen()
        assert inbox.has_answer
        counts = inbox.counts
        assert (counts.valid, counts.again, counts.old, counts.broken) == (5, 1, 1, 1)
        assert [number_of(inbox.next()) for _ in expected] == expected
        assert not inbox.has_answer


def test_parallelogram_is_not_folded_by_speed_references(irb1400):
    """The passive joint reaches its range end while the other joints are within their ranges."""
    q = np.array([0.0, irb1400.q_min[1], irb1400.q_max[2], 0.0, 0.0, 0.0])
    assert folded(irb1400, q).any()
    speed = np.array([0.0, -0.5, 0.8, 0.0, 0.0, 0.0])  # positions out of range are rejected, speeds are not
    settings = GuidanceSettings(max_speed_deviation=100.0, ramp_time=0.1, pos_corr_gain=0.0)
    wire = Wire(lambda message: SensorMessage(message.seqno, qd=speed))
    made = run_session(irb1400, wire, settings, duration=3.0, pause=10.0)
    log = made.log()
    assert log.violations() == ()
    assert not folded(irb1400, log.q).any()
    (fault,) = made.done.faults
    assert fault.number == 50027
    assert not log.qd_ref[-1].any()
