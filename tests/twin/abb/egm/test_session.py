"""Session of a robot in virtual time: its messages, the answers that it takes, and its stops.

Arbitrary datagrams cause no crash and no memory growth, and the arm stays within its limits.
"""

import tracemalloc

import numpy as np
import pytest

import controllers
from tests.support.egm_wires import BRISK, FaultyWire, Wire, run_session, session
from twin import Sensors, forward_kinematics, pose_matrix
from twin.abb.egm import EgmState, GuidanceSettings, MotionState, SensorMessage, encode_sensor
from twin.abb.egm.robot.exchange import MAX_DATAGRAMS, QUEUE, Inbox
from twin.abb.egm.wire import schema
from twin.base.errors import DivergenceError, EgmError
from twin.data.logs.recordings.recording import joint_recording, write_recording

AWAY = np.array([0.3, 0.2, -0.1, 0.2, 0.3, 0.4])
CYCLE = 0.004


def to(q, qd=None):
    """Return a client that always sends the same joint angles."""
    return lambda message: SensorMessage(message.seqno, q=q, qd=qd)


def kinds(made):
    return [event.kind for event in made.done.events]


def test_arm_follows_the_law_for_the_recorded_references(robot):
    """The law of joint guidance, applied to the recorded references, yields the commanded motion."""
    settings = GuidanceSettings(max_speed_deviation=12.0, ramp_time=0.1, lp_filter=4.0, pos_corr_gain=0.6)
    random = np.random.default_rng(3)
    wanted = random.uniform(-0.3, 0.3, (60, 6)), random.uniform(-0.1, 0.1, (60, 6))
    sent = []

    def client(message):
        if random.random() < 0.4:  # some messages stay unanswered
            return None
        q, qd = (values[message.seqno // 20] for values in wanted)
        sent.append(SensorMessage(message.seqno, q=q, qd=qd))
        return sent[-1]

    made = run_session(robot, Wire(client), settings, duration=0.8)
    log = made.log()
    taken = log.arrays["egm_taken"]
    assert taken.sum() == len(sent) == made.done.counts.taken
    assert np.array_equal(log.arrays["egm_seqno"][taken], [message.seqno for message in sent])
    # Of what was sent in degrees.
    assert np.abs(log.arrays["egm_reference"][taken] - [message.q for message in sent]).max() < 1e-14
    assert np.abs(log.arrays["egm_speed"][taken] - [message.qd for message in sent]).max() < 1e-14
    dt, k, limit = 1e-3, 5.0 * 0.6, np.deg2rad(12.0)
    q = v = u = filtered = np.zeros(6)
    q_ref, guided, expected = np.zeros(6), 0, []
    for cycle in range(len(taken)):
        if taken[cycle]:
            q_ref, u = log.arrays["egm_reference"][cycle], log.arrays["egm_speed"][cycle]
        for _ in range(4):
            expected.append(q)
            if not taken[: cycle + 1].any():
                continue
            guided += 1
            filtered = filtered + (1.0 - np.exp(-2.0 * np.pi * 4.0 * dt)) * (k * (q_ref - q) + u - filtered)
            filtered = filtered * min(1.0, limit / np.abs(filtered).max())
            v = min(1.0, guided / 100) * filtered
            q = q + dt * v
    assert np.ptp(expected, axis=0).min() > 0.02, "every joint moved"
    assert np.abs(log.q_ref - expected).max() < 1e-9
    assert not log.saturated.any()
    assert np.abs(log.q - log.q_ref).max() < 1e-10, "a controller with the exact model follows it"
    assert np.array_equal(log.arrays["egm_t"], log.t[::4])


def test_stream_passes_the_checks_of_the_cpp_client(robot):
    """The checks are those of abb_libegm: required fields of each message, and readiness of the robot."""
    wire = Wire(to(AWAY))
    assert kinds(run_session(robot, wire, runs=1)) == ["waiting", "guided", "ended"]
    for k, datagram in enumerate(wire.datagrams):
        message = schema.Robot.FromString(datagram)
        assert (message.header.seqno, message.header.tm, message.header.mtype) == (k, 4 * k, 2)
        for part in (message.feedBack, message.planned):
            assert len(part.joints.joints) == 6
            assert part.cartesian.HasField("pos")
            assert part.time.sec * 1_000_000 + part.time.usec == 4000 * k
            turn = part.cartesian.orient
            assert abs(np.linalg.norm([turn.u0, turn.u1, turn.u2, turn.u3]) - 1.0) < 1e-12
        assert (message.motorState.state, message.rapidExecState.state) == (1, 2)
        states = {"motorState", "mciState", "mciConvergenceMet", "rapidExecState", "utilizationRate"}
        given = {field.name for field, _ in message.ListFields()}
        assert given == {"header", "feedBack", "planned"} | states, "torques are not reported at level 1"
    states = [message.state for message in wire.messages]
    over = len(states) - 1
    assert states == [MotionState.RUNNING] * over + [MotionState.STOPPED], "a final message at the end"
    converged = [message.converged for message in wire.messages]
    assert over - converged.index(True) == 249 + 13, "CondTime, and the ramp of 50 ms"
    assert not converged[over]


def mean_torques(log):
    """Return the mean torques (K, 6) of all cycles but the last."""
    return log.tau.reshape(-1, 4, 6).mean(axis=1)[:-1]


def test_messages_report_the_state_of_the_arm(robot):
    """The state is that at the beginning of the cycle; poses of the tool are in the work object frame."""
    tool = pose_matrix([0.1, 0.0, 0.2, 1.0, 0.0, 0.0, 0.0])
    wire = Wire(to(AWAY))
    settings = GuidanceSettings(max_speed_deviation=20.0, level=0, ramp_time=0.2, wobj="0.5,0,0.2,0,0,0,1")
    law = controllers.make("pd", robot, bandwidth=40.0)
    made = run_session(robot, wire, settings, law=law, T_flange_tool=tool, duration=0.3)
    assert not made.done.faults
    log, sent = made.log(), wire.messages
    q, planned = np.array([m.q for m in sent]), np.array([m.q_planned for m in sent])
    assert np.abs(q - log.q[::4]).max() < 1e-14
    assert np.abs(planned - log.q_ref[::4]).max() < 1e-14
    assert np.abs(q - planned).max() > 1e-3, "this controller has a tracking error"
    T_wobj_base = np.diag([-1.0, -1.0, 1.0, 1.0])
    T_wobj_base[:3, 3] = 0.5, 0.0, -0.2
    for joints, poses in ((q, [m.T for m in sent]), (planned, [m.T_planned for m in sent])):
        assert np.abs(T_wobj_base @ forward_kinematics(robot, joints, tool) - poses).max() < 1e-12
    assert sent[0].tau is None, "no answer has arrived yet"
    assert np.abs(np.array([m.tau for m in sent[1:]]) - mean_torques(log)).max() < 1e-12
    torque = np.max(np.abs(log.tau_demand) / robot.tau_max, axis=1).reshape(-1, 4).max(axis=1)
    assert sent[5].utilization >= 100.0 * torque[4] > 1.0
    assert log.arrays["egm_utilization"][5] == sent[5].utilization


def test_messages_report_what_the_sensors_see_at_the_motors(robot):
    sensors = Sensors(noise=1e-4, speed_cutoff=50.0, seed=2)
    law, settings = controllers.make("pd", robot), GuidanceSettings(**BRISK, torque="always")
    wire = Wire(to(AWAY))
    log = run_session(robot, wire, duration=0.1, sensors=sensors, law=law).log()
    assert np.abs(log.q_seen - log.q - 1e-4 * sensors.draws(0, len(log.t), 6)).max() < 1e-15
    measured = np.array([message.q for message in wire.messages])
    assert np.abs(measured[1:] - log.q_seen[3::4][: len(measured) - 1]).max() < 1e-14
    wire = Wire(to(AWAY))
    log = run_session(robot.with_drives("elastic"), wire, settings, duration=0.1, law=law).log()
    measured = np.array([message.q for message in wire.messages])
    assert np.abs(measured - log.q_motor[::4]).max() < 1e-14
    assert np.abs(measured - log.q[::4]).max() > 1e-6
    assert np.abs(np.array([m.tau for m in wire.messages[1:]]) - mean_torques(log)).max() < 1e-12


def test_lag_delays_answers_by_whole_cycles(robot):
    for lag, cycles in ((0.0, 0), (4.0, 1), (15.0, 4)):
        log = run_session(robot, Wire(to(AWAY)), duration=0.04, lag=lag).log()
        assert list(log.arrays["egm_seqno"]) == [-1] * cycles + list(range(10 - cycles))
        assert np.flatnonzero(np.any(log.q_ref != 0.0, axis=1))[0] == 4 * cycles + 1


def test_silent_client_stops_the_arm_after_comm_timeout(robot):
    """After CommTimeout the arm ramps to rest; the next instruction waits for a client."""
    settings = GuidanceSettings(max_speed_deviation=30.0, ramp_time=0.1, comm_timeout=0.2, cond_time=1000.0)
    active = to(AWAY, qd=np.full(6, 0.2))

    def client(message):
        if message.tm >= 1800:  # another client, whose numbers start at 0
            return SensorMessage(message.tm // 4 - 450, q=np.zeros(6))
        return active(message) if message.tm < 400 else None

    wire = Wire(client)
    made = run_session(robot, wire, settings, duration=3.0, pause=0.5)
    log = made.log()
    silent = 99 * CYCLE + settings.comm_timeout
    k = round(silent / 1e-3)
    assert np.abs(log.qd_ref[k]).max() > 0.05, "the arm moves until then"
    rests = k + 100
    assert not log.qd_ref[rests : 450 * 4].any()
    (fault,) = made.done.faults
    assert (fault.number, fault.name) == (41822, "ERR_UDPUC_COMM")
    assert fault.sentence.startswith("no message from the client for 0.2 s")
    assert kinds(made) == ["waiting", "guided", "fault", "ended", "waiting", "guided", "cut"]
    times = [event.t for event in made.done.events]
    assert times[2:6:3] == pytest.approx([silent, 450 * CYCLE])
    assert times[4] == pytest.approx(times[3] + 0.5 + CYCLE)
    states = np.array([message.state for message in wire.messages])
    error = np.flatnonzero(states == MotionState.ERROR)
    assert np.array_equal(error, np.arange(round(times[2] / CYCLE) + 1, round(times[4] / CYCLE)))
    numbers = [message.seqno for message in wire.messages]
    assert numbers == [*range(error[-1] + 1), *range(len(numbers) - error[-1] - 1)], "a new session"
    assert np.abs(log.q_ref[-1]).max() < 1e-2, "the second client moved the arm back"


@pytest.mark.parametrize(("seconds", "words"), [(0.3, ["cut"]), (2.0, [])])
def test_an_arm_that_has_arrived_is_not_interrupted_in_motion(robot, seconds, words):
    """The filtered speed of its joints comes near 0, and never reaches it."""
    settings = GuidanceSettings(**BRISK, position_gain=20.0, no_wait_cond=True)
    made = run_session(robot, Wire(to(AWAY / 10)), settings, duration=seconds)
    assert kinds(made) == ["waiting", "guided", *words]
    assert made._run.qd.any()


def test_message_of_another_mode_stops_only_the_instruction_of_that_mode(robot):
    """Answers that the lag still delays belong to the previous instruction."""

    def client(message):
        if message.tm > 48:
            return None
        return SensorMessage(message.seqno, **{"T": np.eye(4)} if message.tm == 40 else {"q": np.zeros(6)})

    made = run_session(robot, Wire(client), duration=0.2, pause=0.0, lag=20.0)
    (fault,) = made.done.faults
    assert fault.number == 41826
    assert "pose" in fault.sentence
    assert kinds(made) == ["waiting", "guided", "fault", "ended", "waiting"]
    assert made.done.counts.unused == 2


def test_following_error_stops_the_instruction(robot):
    """The drives have no torque, so the arm falls."""
    made = run_session(robot, Wire(to(AWAY)), law=lambda state, reference: np.zeros(6), runs=1, pause=0.0)
    (fault,) = made.done.faults
    assert (fault.number, fault.name) == (50204, "Motion supervision")
    assert " is 5" in fault.sentence
    error = np.abs(made.log().q - made.log().q_ref).max(axis=1)
    stops = round(made.done.events[2].t / 1e-3)
    assert error[stops - 4] < np.deg2rad(5.0) <= error[stops]


def test_divergence_ends_the_instruction_but_not_the_session(robot):
    good = controllers.make("computed_torque", robot)

    def law(state, reference):
        return np.full(6, np.nan) if state.t == 0.042 else good(state, reference)

    made = run_session(robot, Wire(to(AWAY)), law=law, duration=0.4, pause=0.1)
    assert kinds(made) == ["waiting", "guided", "fault", "ended", "waiting", "guided", "cut"]
    assert "nan N m of joint_1 at t = 0.042 s" in made.done.faults[0].sentence
    log = made.log()
    log.require_consistent()
    assert np.abs(log.q[42] - log.q_ref[42]).max() < 1e-12
    assert np.abs(log.qd[42]).max() > 1e-3, "the arm moves at the divergence"
    assert not log.qd[43].any()
    assert np.array_equal(log.q[43], log.q_ref[43])
    with session(robot, Wire(to(AWAY)), law=good) as broken:
        broken.arm._controller = lambda state, reference: np.full(6, np.nan)
        with pytest.raises(DivergenceError, match="demands nan N m"):
            broken.serve(lambda: False)
        assert kinds(broken) == ["waiting", "fault", "ended"]
        assert broken.state is EgmState.DISCONNECTED


def test_session_without_answers_raises_egm_error(robot):
    with session(robot, Wire(lambda message: None), wait=0.1) as made:
        with pytest.raises(EgmError, match=r"^no client answered from the client within 0.1 s$"):
            made.serve(lambda: False)
        assert made.inbox.cycle == 26
    for options, sentence in (
        ({"runs": 0}, "expected at least 1 run, got 0"),
        ({"wait": np.nan}, "expected wait above 0 s and up to 1e6 s, got nan"),
        ({"steps_per_period": 3}, "a control period that divides the cycle of 4 ms, got 3 ms"),
    ):
        with pytest.raises(EgmError, match=sentence):
            run_session(robot, Wire(to(AWAY)), **options)


def test_robot_returns_to_the_start_of_the_path(robot, tmp_path):
    path = tmp_path / "path.csv"
    start = np.array([0.0, 0.1, 0.1, 0.0, 0.5, 0.0])
    moves = start + np.outer([0.0, 0.1, 0.2], [1.0, 0, 0, 0, 0, 0])
    write_recording(path, joint_recording([0.0, 0.25, 0.5], moves))
    settings = GuidanceSettings(mode="path", max_speed_deviation=60.0)
    wire = Wire(lambda message: SensorMessage(message.seqno, path_correction=np.zeros(3)))
    made = run_session(robot, wire, settings, start=start, path=path, runs=2, pause=0.1)
    assert not made.done.faults, made.done.faults
    assert kinds(made) == ["waiting", "guided", "ended", "returning", "waiting", "guided", "ended"]
    assert (made.done.runs, made.done.completed) == (2, 2)
    log = made.log()
    second = round(made.done.events[4].t / 1e-3)
    assert np.abs(log.q[second] - start).max() < 1e-9
    back = slice(round(made.done.events[3].t / 1e-3), second)
    assert np.abs(log.q[back] - start).max() > 0.1
    share = np.abs(log.qd_ref[back]).max(axis=0) / robot.qd_max
    assert 0.2 < share.max() < 0.25 + 1e-3, "a quarter of the speed limits"
    np.testing.assert_allclose(np.diff(log.q_ref[back], axis=0), 1e-3 * log.qd_ref[back][1:], atol=1e-12)
    assert np.abs(log.q - log.q_ref).max() < 1e-10


ROUGH = {"max_speed_deviation": 60.0, "ramp_time": 0.2, "comm_timeout": 0.5, "cond_time": 1000.0}


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
    noise, cycles = 60, 400
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
    assert (counts.broken > 17_000, counts.taken > 80, min(counts.again, counts.old) > 10) == (True,) * 3
    numbers = [fault.number for fault in made.done.faults]
    assert 50027 in numbers
    assert numbers[-1] == 41822
    assert 1 <= kinds(made).count("broken") <= kinds(made).count("waiting"), "at most one per instruction"
    assert not log.qd_ref[-200:].any(), "the arm rests"


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
