"""Minimal robot in lockstep: it sends a message, waits for an answer, and follows it."""

import socket
from contextlib import contextmanager
from threading import Thread

import numpy as np

from twin.abb.egm import MotionState, RobotMessage, decode_sensor, encode_robot

CYCLE = 0.004
GAIN = 5.0


def guided_for_a_while(k):
    """Return the state in message k of an instruction that ends after 3.2 s."""
    return MotionState.RUNNING if k < 800 else MotionState.STOPPED


class StubRobot:
    """Robot that obeys the law of joint guidance exactly, and stores the received answers in `answers`."""

    def __init__(self, port, q, *, messages=10_000, state=guided_for_a_while, start_tm=100, patient=False):
        self.to, self.q, self.messages, self.state = ("127.0.0.1", port), q, messages, state
        self.tm, self.patient = start_tm, patient
        self.answers, self.stopped = [], False

    def message(self, k, target):
        T = np.eye(4)
        converged = bool(np.all(np.abs(self.q - target) < np.radians(0.5)))
        state = self.state(k)
        return RobotMessage(
            k, self.tm + 4 * k, self.q, self.q, T, T, k * CYCLE, state=state, converged=converged
        )

    def run(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
            wire.settimeout(0.02)
            target = self.q
            for k in range(self.messages):
                data = self.exchange(wire, encode_robot(self.message(k, target)))
                if data is None:
                    return
                answer = decode_sensor(data, len(self.q), "joint")
                self.answers.append(answer)
                speed = np.zeros_like(self.q) if answer.qd is None else answer.qd
                target = self.q if answer.q is None else answer.q
                self.q = self.q + CYCLE * (GAIN * (target - self.q) + speed)

    def exchange(self, wire, message):
        """Send a message and return the answer; `None` after a stop without further answers.

        With `patient` the message is sent again until the client has started.
        """
        wire.sendto(message, self.to)
        while True:
            stopped = self.stopped
            try:
                return wire.recv(1025)
            except TimeoutError:
                if stopped:
                    return None
                if self.patient and not self.answers:
                    wire.sendto(message, self.to)


@contextmanager
def stub_robot(port, q, **settings):
    """Run a `StubRobot` in a thread."""
    robot = StubRobot(port, np.array(q, dtype=float), **settings)
    thread = Thread(target=robot.run)
    thread.start()
    try:
        yield robot
    finally:
        robot.stopped = True
        thread.join(10.0)
        assert not thread.is_alive()
