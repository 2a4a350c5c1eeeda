"""EGM client: receiving, sending, rejected arguments, and the replay of a log."""

import re
import socket

import numpy as np
import pytest

from scenarios.shell.command_line import main
from tests.support.egm_messages import Q, pose, robot_message
from tests.support.egm_stub import CYCLE, stub_robot
from tests.support.example_logs import log_of, made_log
from tests.support.refusals import refused
from twin.abb.egm import EgmClient, MotionState, RobotMessage, decode_sensor, encode_robot, replay
from twin.abb.egm.client import LogReferences
from twin.base.errors import EgmError, EgmWarning
from twin.studies.learning import LearnedInput


@pytest.fixture
def client():
    with EgmClient(port=0, timeout=5.0) as client:
        yield client


@pytest.fixture
def robot_socket(client):
    """Provide a socket that sends to the client."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.connect(("127.0.0.1", client.port))
        wire.settimeout(5.0)
        yield wire


def test_client_rejects_used_ports_foreign_addresses_and_early_answers(client):
    senders = {client.send_joints: Q, client.send_pose: pose(), client.send_path_correction: Q[:3]}
    for send, sent in senders.items():
        with pytest.raises(EgmError, match="no robot to answer yet: the robot sends first"):
            send(sent)
    assert client.latest() is None
    for port, host in ((client.port, "127.0.0.1"), (0, "192.0.2.1"), (70000, "127.0.0.1")):
        with pytest.raises(EgmError, match=f"cannot listen on port {port} of {host}"):
            EgmClient(port, host)


def test_client_sends_the_given_references(client, robot_socket):
    robot_socket.send(encode_robot(robot_message()))
    assert client.receive().q == pytest.approx(Q, abs=1e-15)
    client.send_joints(Q, 2.0 * Q)
    client.send_joints(qd=Q)
    client.send_pose(pose(), twist=Q)
    client.send_path_correction((0.0, 0.001, 0.002), age=0.012)
    came = [decode_sensor(robot_socket.recv(1025), 6, mode) for mode in ("joint", "joint", "pose", "path")]
    assert [message.seqno for message in came] == [1, 2, 3, 4]
    assert came[0].q == pytest.approx(Q, abs=1e-15)
    assert came[0].qd == pytest.approx(2.0 * Q, abs=1e-15)
    assert came[1].q is None
    assert pytest.approx(pose(), abs=1e-15) == came[2].T
    assert came[2].twist == pytest.approx(Q, abs=1e-15)
    assert came[3].path_correction == pytest.approx((0.0, 0.001, 0.002), abs=1e-18)
    assert came[3].age == 0.012


def test_receive_returns_messages_in_order_and_latest_the_newest(client, robot_socket):
    for seqno in range(5):
        robot_socket.send(encode_robot(robot_message(seqno=seqno)))
    assert [client.receive().seqno, next(iter(client)).seqno] == [0, 1]
    newest = client.latest()
    assert newest.seqno == 4
    assert client.latest() is newest
    with pytest.raises(EgmError, match=f"no robot message within 0.01 s on port {client.port} of 127"):
        client.receive(timeout=0.01)


def test_malformed_datagram_is_reported_once_and_skipped(client, robot_socket):
    valid = [encode_robot(robot_message(seqno=seqno)) for seqno in (3, 4)]
    for sent in (b"hello robot", *valid, b"", bytes(3000)):
        robot_socket.send(sent)
    pattern = "^ignoring a datagram from 127.* is no robot message: .*expected an EGM message, got 11 bytes"
    with pytest.warns(EgmWarning, match=pattern):
        assert client.receive().seqno == 3
    assert client.receive().seqno == 4
    assert client.latest().seqno == 4
    assert (client.counts.messages, client.counts.malformed) == (2, 3)
    with pytest.raises(EgmError, match="sends to this port; 3 datagrams were malformed"):
        client.receive(timeout=0.0)


def test_first_sender_is_the_robot(client, robot_socket, monkeypatch):
    """A flood of other senders does not block the client."""
    monkeypatch.setattr("twin.abb.egm.client.MAX_SKIPPED", 20)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.settimeout(0.01)
        robot_socket.send(encode_robot(robot_message(seqno=3)))
        assert client.receive().seqno == 3
        for data in (encode_robot(robot_message(-Q, seqno=4)), *[b"hello"] * 29):
            stranger.sendto(data, ("127.0.0.1", client.port))
        port, robot = stranger.getsockname()[1], robot_socket.getsockname()[1]
        pattern = f"ignoring datagrams from 127.0.0.1:{port}: the robot is 127.0.0.1:{robot}"
        with pytest.warns(EgmWarning, match=f"^{pattern}$") as given:
            assert client.latest().seqno == 3
        assert len(given) == 1
        assert client.strangers == 20
        robot_socket.send(encode_robot(robot_message(seqno=4)))
        assert np.abs(client.receive().q - Q).max() < 1e-15
        client.send_joints(Q)
        assert decode_sensor(robot_socket.recv(1025), 6, "joint").seqno == 1
        with pytest.raises(TimeoutError):
            stranger.recv(1025)
    assert (client.strangers, client.stranger.port, client.robot.port) == (30, port, robot)
    assert (client.counts.messages, client.counts.malformed) == (2, 0)
    with pytest.raises(EgmError, match=f"ignored 30 from senders other than 127.0.0.1:{robot}"):
        client.receive(timeout=0.0)


def test_reordered_message_is_not_the_latest(client, robot_socket):
    for place in (0, 1, 3, 2, 3, 2, 4, 1):
        robot_socket.send(encode_robot(robot_message(seqno=2**32 - 2 + place, tm=2**32 - 8 + 4 * place)))
    assert client.latest().seqno == 2
    counts = client.counts
    assert (counts.messages, counts.out_of_order, counts.doubled, counts.lost) == (4, 1, 3, 0)
    robot_socket.send(encode_robot(robot_message(seqno=0, tm=60)))  # the robot restarted, as after a fault
    robot_socket.send(encode_robot(robot_message(seqno=1, tm=64)))
    assert [client.receive().seqno for _ in range(2)] == [0, 1]
    assert counts.restarts == 1


def test_client_rejects_invalid_references(client, robot_socket):
    robot_socket.send(encode_robot(robot_message()))
    client.receive()
    refused(
        (client.send_joints, "expected q, qd or both"),
        (lambda: client.send_joints(Q[:5]), r"expected q of shape \(6,\), got \(5,\)"),
        (lambda: client.send_joints(qd=np.full(6, np.nan)), "expected qd to be finite"),
        (lambda: client.send_path_correction((1.0, 2.0)), r"expected path_correction of shape \(3,\)"),
    )
    robot_socket.settimeout(0.01)
    with pytest.raises(TimeoutError):
        robot_socket.recv(1025)


@pytest.fixture
def log(irb140):
    """Log at 500 Hz in which every joint oscillates."""
    return log_of(irb140, samples=201, scale=0.2)


def test_log_is_replayed_at_the_times_of_the_robot(log, client):
    start_tm = 2**32 - 400  # wraps within the log
    with stub_robot(client.port, log.q_ref[0] + 0.02, start_tm=start_tm) as robot:
        done = replay(client, log, approach=0.2)
    assert done.trouble == ""
    assert done.messages == len(robot.answers)
    q = np.array([answer.q for answer in robot.answers])
    qd = np.array([answer.qd if answer.qd is not None else np.zeros(6) for answer in robot.answers])
    begun = next(k for k, speed in enumerate(qd) if speed == pytest.approx(log.qd_ref[0], abs=1e-14))
    end = begun + 100  # every second of 201 samples at 2 ms
    assert q[begun:end] == pytest.approx(log.q_ref[:200:2], abs=1e-12)
    assert qd[begun:end] == pytest.approx(log.qd_ref[:200:2], abs=1e-12)
    assert q[end:] - log.q_ref[-1] == pytest.approx(0.0, abs=1e-14)
    assert not qd[end:].any()
    assert np.abs(np.diff(q[:begun], axis=0)).max() < 0.2 * CYCLE * (1 + 1e-9)
    assert q[0] == pytest.approx(log.q_ref[0] + 0.02, abs=1e-14)
    assert done.duration >= log.t[-1] - log.t[0]
    assert 1e-4 < done.deviation.max() < 0.02


def test_log_is_interpolated_between_its_samples():
    recorded = LogReferences(np.array([0.0, 1.0]), np.array([[0.0], [2.0]]), np.array([[3.0], [4.0]]))
    assert [part.tolist() for part in recorded(0.25)] == [[0.5], [3.25], [0.0]]


def test_learned_input_corrects_the_references_that_are_sent(log, client):
    u = 1e-3 * np.sin(np.arange(201) / 30.0)[:, None] * np.arange(1.0, 7.0)
    learned = LearnedInput("irb140", log.t, log.q_ref, u)
    with stub_robot(client.port, log.q_ref[0]) as robot:
        assert replay(client, log, learned=learned).trouble == ""
    q = np.array([answer.q for answer in robot.answers])
    first = int(np.argmin(np.abs(q - (log.q_ref + u)[2]).max(axis=1)))
    assert q[first : first + 98] == pytest.approx((log.q_ref + u)[2:198:2], abs=1e-12)
    assert q[-1] == pytest.approx((log.q_ref + u)[-1], abs=1e-14)


def test_replay_rejects_what_cannot_be_sent(irb140, log, client):
    zeros = np.zeros_like(log.q_ref)
    accelerations = LearnedInput("irb140", log.t, log.q_ref, zeros, "acceleration")
    other_motion = LearnedInput("irb140", log.t, log.q_ref + 0.1, zeros)
    refused(
        (lambda: replay(client, log, learned=accelerations), "EGM takes positions and speeds only"),
        (lambda: replay(client, log, learned=other_motion), "learned for another motion"),
        (lambda: replay(client, log, approach=0.0), "expected positive approach and patience"),
    )
    with pytest.raises(EgmError, match="must be finite"):
        replay(client, made_log(irb140, np.zeros((3, 6)), np.full((3, 6), np.nan)))
    with stub_robot(client.port, np.zeros(2)), pytest.raises(EgmError, match="6 joints, the robot has 2"):
        replay(client, log)


def test_replay_reports_why_the_robot_stopped(log):
    for settings, limits, pattern in (
        ({"state": lambda k: 1 if k == 40 else 3}, {}, "stopped with an error 0.1.. s into the log"),
        ({"state": lambda k: 2 if k == 40 else 3}, {}, "ended its guidance 0.1.. s into the log.*CondTime"),
        ({"state": lambda k: 2}, {"patience": 0.1}, "the robot is not guided after 0.1 s"),
        ({"messages": 40}, {}, "received no robot message within 0.2 s"),
        ({}, {"approach": 50.0, "patience": 0.1}, "^0.1 s after the approach .* not arrived: joint"),
    ):
        start = log.q_ref[0] + 0.5 * ("approach" in limits)
        with EgmClient(port=0, timeout=0.2) as client, stub_robot(client.port, start, **settings):
            assert re.search(pattern, replay(client, log, **limits).trouble)


def test_replay_ignores_outdated_and_foreign_messages(irb140):
    """A late message would otherwise count as 2^32 ms ahead, at the end of the log."""
    log = made_log(irb140, np.linspace(0.0, 0.01, 30)[:, None] * np.ones(6))
    given = [100 * k for k in range(3)] + [50] + [100 * k for k in range(3, 40)]

    class Client:
        answers = 0

        def receive(self, timeout=None):
            tm = given.pop(0)
            return RobotMessage(0, tm, np.zeros(6), np.zeros(6), converged=True)

        def send_joints(self, q, qd=None):
            self.answers += 1

    client = Client()
    done = replay(client, log, hold=0.0)
    assert done.trouble == ""
    assert done.duration == pytest.approx(log.t[-1], abs=0.11)
    given[:] = [0, 100, 200, 10_000]
    assert "jumped by 9.8 s" in replay(client, log, hold=0.0).trouble


def test_replay_waits_for_guidance_and_holds_until_its_end(irb140, client, monkeypatch):
    log = made_log(irb140, np.zeros((3, 6)))
    states = [MotionState.STOPPED] * 5 + [MotionState.RUNNING] * 55
    states = dict(enumerate([*states, MotionState.STOPPED]))
    with stub_robot(client.port, np.zeros(6), state=lambda k: states.get(k, 3)) as robot:
        done = replay(client, log, hold=1.0)
    assert (done.trouble, done.messages) == ("", 61)
    assert all((answer.qd is None) == (k < 5) for k, answer in enumerate(robot.answers[:8]))
    with EgmClient(port=0) as client, stub_robot(client.port, np.zeros(6)) as robot:
        done = replay(client, log, hold=0.1)
    assert done.messages == len(robot.answers) == 31  # 0.02 s of the log, 0.1 s of holding, the end
    monkeypatch.setattr("twin.abb.egm.client.SILENCE_AT_END", 0.05)
    with EgmClient(port=0) as client, stub_robot(client.port, np.zeros(6), messages=20):
        assert replay(client, log, hold=1.0)[::3] == (20, "")


def test_replay_command_sends_a_log(log, tmp_path, capsys):
    with EgmClient(port=0) as client:
        free_port = client.port
    log.save(tmp_path / "run.npz")
    words = ["egm", "replay", str(tmp_path / "run.npz"), "--port", str(free_port)]
    with stub_robot(free_port, log.q_ref[0] + 0.02, patient=True) as robot:
        assert main([*words, "--approach", "20"]) == 0
    approach = np.diff([answer.q[0] for answer in robot.answers[:25]])
    assert 0.9 < np.abs(approach).max() / (np.radians(20.0) * CYCLE) < 1.0
    printed = capsys.readouterr().out
    assert f"{len(robot.answers)} answers, 0.4" in printed

    with stub_robot(free_port, log.q_ref[0], patient=True, state=lambda k: 1 if k == 40 else 3):
        assert main(words) == 1
    assert "irb-twin: the robot stopped with an error 0.1" in capsys.readouterr().err
    for more, sentence in (
        (["--wait", "0.02"], "received no robot message within 0.02 s"),
        (["--port", "0"], "--port 0: expected 1 to 65535"),
    ):
        assert main([*words, *more]) == 2
        assert sentence in capsys.readouterr().err
