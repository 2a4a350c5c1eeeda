"""The mirror on the network: forwarding of datagrams, and the commands."""

import socket
import threading
import time
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

import controllers
import twin
from scenarios.shell.command_line import main
from tests.support.egm_streams import PAYLOAD, excited_log, messages, model_of
from twin.abb.egm import (
    EgmClient,
    EgmRobot,
    GuidanceSettings,
    Mirror,
    SessionPlan,
    encode_robot,
    virtual_time,
)
from twin.abb.egm.mirror import recording
from twin.abb.egm.mirror.recording import Relay, is_message
from twin.base.errors import EgmError
from twin.data.identification.excitation import stored_excitation
from twin.physics.robot.flange_load import payload_of

HERE = ("127.0.0.1", 0)


@pytest.fixture(scope="module")
def stream():
    """Provide an arm with a payload of 3 kg and 5 s of its encoded messages."""
    log = excited_log(5.0)
    return model_of(log), [encode_robot(message) for message in messages(log)]


@contextmanager
def open_socket():
    """Open a UDP socket on loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(HERE)
        made.settimeout(5.0)
        yield made


@contextmanager
def sockets(count):
    """Open UDP sockets on loopback."""
    with ExitStack() as stack:
        yield [stack.enter_context(open_socket()) for _ in range(count)]


def eventually(condition):
    """Wait until a condition holds."""
    end = time.monotonic() + 5.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_relay_forwards_datagrams_unchanged(stream):
    _, datagrams = stream
    with sockets(3) as (client, robot, stranger), Relay(HERE, is_message, client.getsockname()) as relayed:
        stranger.sendto(b"no message", relayed.at)
        for k, datagram in enumerate(datagrams[:50]):
            robot.sendto(datagram, relayed.at)
            got, here = client.recvfrom(2048)
            assert got == datagram
            stranger.sendto(datagram, relayed.at)
            stranger.sendto(b"an answer?", here)
            answer = bytes([k, 255]) * 20  # arbitrary bytes
            client.sendto(answer, here)
            assert robot.recvfrom(2048) == (answer, tuple(relayed.at))
        assert [relayed.next(1.0).data for _ in range(50)] == datagrams[:50]
        assert relayed.next(0.0) is None
        passed = relayed.counts
        eventually(lambda: passed.strangers == 101)
        assert (passed.received, passed.forwarded, passed.answers, passed.undelivered) == (50, 50, 50, 0)
        assert passed.stranger == stranger.getsockname()
        assert 0 < passed.added_mean <= passed.added < 1.0


def test_relay_accepts_a_new_robot_address_after_silence(stream, monkeypatch):
    monkeypatch.setattr(recording, "TAKEOVER_SILENCE", 0.05)
    _, datagrams = stream
    with sockets(3) as (client, first, second), Relay(HERE, is_message, client.getsockname()) as relayed:
        first.sendto(datagrams[0], relayed.at)
        _, here = client.recvfrom(2048)
        time.sleep(0.1)
        second.sendto(b"no message of a robot", relayed.at)
        second.sendto(datagrams[1], relayed.at)
        assert client.recvfrom(2048)[0] == datagrams[1]
        client.sendto(b"answer", here)
        assert second.recvfrom(2048)[0] == b"answer"
        assert relayed.counts.strangers == 1


def test_relay_counts_undelivered_and_skipped_datagrams(stream, monkeypatch):
    monkeypatch.setattr(recording, "MAX_WAITING", 3)
    _, datagrams = stream
    with open_socket() as gone:
        address = gone.getsockname()
    with open_socket() as robot, Relay(HERE, is_message, address) as relayed:
        for datagram in [*datagrams[:20], b"x" * 1500]:
            robot.sendto(datagram, relayed.at)
        eventually(lambda: relayed.counts.received == 21 and relayed.counts.refused > 0)
        assert relayed.counts.overlooked == 18
        assert relayed.counts.undelivered >= 1  # too long datagrams are not forwarded
        with pytest.raises(EgmError, match="stop the program that uses the port, or choose"):
            Relay(relayed.at, is_message)
    for at in (address, ("0.0.0.0", address[1])):
        with pytest.raises(EgmError, match="the mirror itself listens at"):
            Relay(at, is_message, address)


def guided(loaded, motion, cycles, to, client):
    """Return the log of an arm in lockstep that a client guides along a motion."""
    settings = GuidanceSettings(level=0, torque="always", max_speed_deviation=1e3, ramp_time=0.005)
    law = controllers.make("computed_torque", loaded, bandwidth=20.0, period=1e-3)
    with virtual_time(limit=60.0):
        arm = EgmRobot(loaded, law, settings, SessionPlan(wait=20.0), to=to, start=motion.start)
    with arm:
        for k in range(cycles):
            client.receive()
            q, qd, _ = motion(np.array([0.004 * k]))
            client.send_joints(q[0], qd[0])
        arm.stop()
    return arm.log


def test_mirror_does_not_change_the_motion_and_estimates_the_payload():
    robot = twin.load("irb140").with_drives("rigid")
    loaded, motion, reports = robot.with_payload(payload_of(PAYLOAD)), stored_excitation(robot), []
    with EgmClient(0) as client:
        alone = guided(loaded, motion, 50, ("127.0.0.1", client.port), client)
    with EgmClient(0) as client, Mirror(robot, listen=HERE, forward=("127.0.0.1", client.port)) as mirror:
        follower = threading.Thread(target=lambda: reports.extend(mirror.reports()))
        follower.start()
        log = guided(loaded, motion, 500, tuple(mirror.relay.at), client)
        eventually(lambda: mirror.counts.messages >= 500)
        mirror.stop()
        follower.join()
    for name in ("q", "qd", "tau", "q_ref"):
        np.testing.assert_array_equal(getattr(log, name)[:200], getattr(alone, name)[:200])
    assert mirror.relay.counts.answers == 500
    assert mirror.counts.lost == mirror.counts.malformed == 0
    assert reports[-1].payload.mass == pytest.approx(3.0, rel=0.05)
    assert reports[-1].lateness.largest < 60.0


@pytest.fixture
def run(capsys, monkeypatch):
    """Function that runs a command which receives datagrams, and returns its exit status and its output."""

    def running(words, datagrams):
        enter, threads = Relay.__enter__, []

        def send(port):
            with open_socket() as robot:
                for datagram in datagrams:
                    robot.sendto(datagram, ("127.0.0.1", port))
                    time.sleep(2e-4)

        def listening(self):
            made = enter(self)
            threads.append(threading.Thread(target=send, args=(self.at.port,)))
            threads[0].start()
            return made

        with monkeypatch.context() as patch:
            patch.setattr(Relay, "__enter__", listening)
            status = main(["egm", *words, "--listen", "127.0.0.1:0"])
        threads[0].join()
        return status, capsys.readouterr()

    return running


def test_mirror_command_prints_one_line_per_second(stream, tmp_path, run):
    _, datagrams = stream
    file = tmp_path / "mirror.npz"
    words = ["mirror", "--duration", "3", "--alarm", "30", "--log", str(file)]
    status, output = run(words, [*datagrams[:100], b"nonsense", *datagrams[100:]])
    assert status == 1, "for the alarm"
    lines = output.out.splitlines()
    assert lines[0].endswith("model: irb140, rigid drives, payload none")
    seconds = [line for line in lines if " | " in line]
    assert [float(line.split(" s")[0]) for line in seconds] == [0.8, 1.8, 2.8]
    parts = seconds[-1].split(" | ")
    assert parts[4].startswith("payload +3.0")
    alarms = [line for line in lines if "ALARM" in line]
    assert any("ALARM: the torque of joint 2 deviates by " in line for line in alarms)
    assert "1 malformed" in output.out
    assert not output.err
    log = twin.Log.load(file)
    assert log.arrays["second_t"] == pytest.approx([0.8, 1.8, 2.8], abs=0.05)
    assert log.arrays["second_payload"][-1, 0] == pytest.approx(3.0, abs=0.15)
    assert log.arrays["second_alarms"].sum() == len(alarms)
    status, output = run(
        ["mirror", "--duration", "1", "--payload", PAYLOAD, "--alarm", "30"], datagrams[:400]
    )
    assert (status, "alarms: 0" in output.out) == (0, True)


def test_recorded_stream_identifies_the_payload(stream, tmp_path, run, capsys):
    file = tmp_path / "stream.npz"
    status, output = run(["record", str(file), "--duration", "3.9"], stream[1])
    assert status == 0
    assert "one every 4.0000 ms, with torques; 0 lost and filled" in output.out
    assert "ended: the duration of 3.9 s is complete" in output.out
    assert main(["identify", str(file), "--payload"]) == 0
    mass = float(capsys.readouterr().out.split("--payload ")[-1].split(",")[0])
    assert mass == pytest.approx(3.0, rel=0.03)


def test_listening_commands_reject_wrong_use(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, sentence in (
        ("mirror --wait 0.1", "received no robot message at 127.0.0.1:"),
        ("mirror --wait 0", "expected a positive, finite --wait in s, got 0.0"),
        ("mirror --forward client", "expected HOST:PORT with a port of 1 to 65535"),
        ("mirror --log mirror.csv", "mirror.csv"),
        ("record x.npz --duration 4000", "expected a duration above 0 s and up to 3600 s"),
        ("mirror --robot no_such_robot", "no_such_robot"),
    ):
        assert main(["egm", *words.split(), "--listen", "127.0.0.1:0"]) == 2
        output = capsys.readouterr().err
        assert sentence in output
        assert output.count("\n") == 1
    assert not list(tmp_path.iterdir())
    assert main(["egm", "mirror", "--wait", "0.1", "--listen", "0.0.0.0:0"]) == 2
    assert "listening at 0.0.0.0:0, which other machines can reach" in capsys.readouterr().err
