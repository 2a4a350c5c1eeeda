"""`EgmRobot` over UDP, in lockstep with its client and by the clock; addresses and rejected arguments."""

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest

import controllers
from tests.support.egm_wires import BRISK
from tests.support.refusals import refused
from twin import egm
from twin.abb.egm.robot.exchange import LatenessMeter, Lockstep, RealTime
from twin.abb.egm.wire.channel import UdpChannel
from twin.abb.egm.wire.encoding import encode_sensor
from twin.base.errors import EgmError, LimitError

MESSAGES = 60


def made(robot, port, plan=None, **options):
    law = controllers.make("computed_torque", robot)
    return egm.EgmRobot(robot, law, egm.GuidanceSettings(**BRISK), plan, to=("127.0.0.1", port), **options)


def guided(client, target, messages=MESSAGES):
    """Answer a number of messages."""
    for _ in range(messages):
        client.receive()
        client.send_joints(target)


def lockstep(robot, *targets, meanwhile=lambda arm: None):
    """Guide several robots at the same time, one to each target, and return their results."""
    with egm.virtual_time(20.0), ExitStack() as stack, ThreadPoolExecutor() as pool:
        clients = [stack.enter_context(egm.EgmClient(0)) for _ in targets]
        plan = egm.SessionPlan(lag=0.0)
        robots = [stack.enter_context(made(robot, client.port, plan)) for client in clients]
        ends = [pool.submit(guided, *pair) for pair in zip(clients, targets, strict=True)]
        meanwhile(robots[0])
        for end in ends:
            end.result()
    return [arm.result for arm in robots]


def test_lockstep_runs_are_equal_to_the_bit(robot):
    """The run is repeated alone, together with another robot, and with answers of another sender."""
    one, other = np.full(6, 0.1), np.full(6, -0.2)
    (first,) = lockstep(robot, one)
    assert len(first.log.t) == 4 * (MESSAGES + 1), "after each answer there is one more cycle"
    assert first.counts.valid == MESSAGES == first.counts.taken
    assert list(first.log.arrays["egm_seqno"]) == [-1, *range(1, MESSAGES + 1)]
    assert np.abs(first.log.q - first.log.q_ref).max() < 1e-12

    def stranger(arm):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(5):
                sender.sendto(encode_sensor(egm.SensorMessage(7, q=other)), ("127.0.0.1", arm.port))

    again, beside = lockstep(robot, one, other, meanwhile=stranger)
    assert first.log.identical(again.log)
    assert beside.log.q[-1, 0] < -0.01
    assert again.strangers == 5
    (event,) = [each for each in again.events if each.kind == "stranger"]
    assert event.sentence.startswith("ignoring datagrams from 127.0.0.1:")
    assert again.lateness == egm.Lateness()


def test_robot_thread_reports_state_and_ends(robot):
    with egm.EgmClient(0) as client, egm.virtual_time():
        arm = made(robot, client.port, egm.SessionPlan(lag=1000.0), start=np.full(6, 0.1))
        assert arm.state is egm.EgmState.DISCONNECTED
        assert np.array_equal(arm.q, np.full(6, 0.1))
        with arm:
            guided(client, np.zeros(6), 3)
            client.receive()
            assert arm.state is egm.EgmState.RUNNING
            assert arm.log is not None
        assert arm.state is egm.EgmState.DISCONNECTED
        with pytest.raises(EgmError, match=r"has already been run: create a new one"):
            arm.run()


def test_lockstep_without_client_raises_egm_error(robot):
    with egm.EgmClient(0) as client:
        free = client.port
    with egm.virtual_time(0.1):
        with pytest.raises(EgmError, match=r"^no client answered within 0.1 s of real time$"):
            made(robot, free).run()
        with egm.EgmClient(0) as client:
            arm = made(robot, client.port)
            arm.__enter__()
            guided(client, np.zeros(6), 2)
            assert arm.wait()
            with pytest.raises(EgmError, match=r"^no answer to message 2 within 0.1 s of real time, after 2"):
                arm.__exit__()
    with pytest.raises(ValueError, match=r"a positive, finite limit of real time in s, got nan"):
        egm.virtual_time(float("nan")).__enter__()


def test_lockstep_waits_for_a_late_client(robot):
    """Only an undelivered message is sent again."""
    with egm.EgmClient(0) as client:
        port = client.port
    with egm.virtual_time(20.0), made(robot, port) as arm:
        assert not arm.wait(0.05)
        with egm.EgmClient(port) as client:
            numbers = []
            for _ in range(5):
                numbers.append(client.receive().seqno)
                client.send_joints(np.zeros(6))
            client.receive()
    assert numbers == [0, 1, 2, 3, 4]
    assert arm.result.counts.valid == 5


def test_real_time_run_reports_lateness(robot):
    with egm.EgmClient(0) as client:
        arm = made(robot, client.port, egm.SessionPlan(duration=0.2))
        with arm:
            guided(client, np.full(6, 0.1), 45)
            assert arm.wait()
    result = arm.result
    assert result.sent == result.lateness.cycles == 50
    assert result.lateness.worst >= result.lateness.percentile_99 >= result.lateness.median > 0.0
    assert result.counts.taken > 20
    assert result.faults == ()


def test_lateness_is_counted_in_bins():
    meter = LatenessMeter(4e-3)
    assert str(meter.lateness()) == "no messages were sent by the clock"
    for milliseconds in [0.01] * 97 + [0.5, 2.51, 300.0]:
        meter.add(1e-3 * milliseconds)
    lateness = meter.lateness()
    assert (lateness.cycles, lateness.late, lateness.share) == (100, 2, 0.02)
    found = lateness.median, lateness.percentile_99, lateness.worst
    assert found == pytest.approx((2e-5, 2.52e-3, 0.3))
    assert lateness.gap == pytest.approx(4e-3 + 0.3 - 2.51e-3)
    assert str(lateness).startswith("2 of 100 messages (2.00%) were more than 1 ms late; median 0.02 ms, 99")


class RecordedInbox:
    """Inbox that stores when it listens, and how often it had listened when it was to catch up."""

    def __init__(self, clock):
        self.clock, self.heard, self.caught_up = clock, [], []

    def listen(self):
        self.heard.append(self.clock[0])

    def catch_up(self):
        self.caught_up.append(len(self.heard))


def test_clock_restarts_after_a_large_delay(monkeypatch):
    """A delay of 0.1 s is made up; after a larger one the clock restarts."""
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds + 4e-4))
    pace, inbox, delays = RealTime(0.004), RecordedInbox(now), []
    pace.begin()
    for busy in (0.001, 0.001, 0.09, 0.001, 0.5, 0.001):
        pace.sending()
        pace.sent(inbox)
        delays.append(pace.new_delay())
        now[0] += busy
        assert pace.wait(inbox, lambda: None, lambda: False)
    assert [bool(one) for one in delays] == [False, False, False, True, False, False], "once, as it happens"
    assert delays[3].startswith("a cycle came 90 ms after the one before")
    lateness = pace.lateness()
    assert inbox.heard[:3] == pytest.approx([0.0, 0.0041, 0.0081])
    assert (lateness.cycles, lateness.late, lateness.restarts) == (6, 3, 1)
    assert lateness.worst == pytest.approx(0.5 + 0.09, abs=0.02), "the clock is set anew after it"
    assert inbox.caught_up == [4, 5, 6], "in the cycles that were late"
    assert not pace.wait(inbox, lambda: None, lambda: True)


def test_endless_answers_do_not_delay_a_stop():
    class Inbox:
        has_answer, capacity = True, 10

        def listen(self, most):
            assert most == 1

    pace = Lockstep(1.0, 1.0)
    inbox = Inbox()
    inbox.counts = type("Counts", (), {"valid": 1})()
    assert [pace.wait(inbox, lambda: None, lambda: True) for _ in range(12)] == [True] * 10 + [False] * 2


def test_invalid_addresses_raise_egm_error():
    channel, here = UdpChannel(("127.0.0.1", 6510)), ("127.0.0.1", 6510)
    refused(
        (lambda: UdpChannel(("192.0.2.1", 6510)), "192.0.2.1:6510 is on another machine: bind must name"),
        (lambda: UdpChannel(("127.0.0.1", 0)), "expected a destination port of 1 to 65535, got 0"),
        (lambda: UdpChannel(("no-such.invalid", 6510)), "cannot resolve the address no-such.invalid:6510: "),
        (lambda: UdpChannel(here, ("127.0.0.1", channel.port)), "Address already in use"),
        (lambda: UdpChannel(here, ("::1", 0)), "same IP version as 127.0.0.1:6510 in bind, got "),
        error=EgmError,
    )
    channel.close()


def test_robot_rejects_invalid_arguments(robot):
    for plan, options, error, sentence in (
        ({}, {"start": np.full(6, 10.0)}, LimitError, "joint_1 would be at .* at the start"),
        ({}, {"start": np.zeros(5)}, ValueError, "expected start of shape"),
        ({"lag": -1}, {}, EgmError, "expected a lag of 0 to 1000 ms, got -1"),
        ({}, {"time_step": 5e-4, "steps_per_period": 3}, EgmError, "divides the cycle of 4 ms, got 1.5 ms"),
    ):
        with pytest.raises(error, match=sentence):
            made(robot, 6510, egm.SessionPlan(**plan), **options)
