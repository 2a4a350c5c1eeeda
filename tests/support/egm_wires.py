"""Simulated network between a robot and a client in the same process, with deterministic timing."""

from collections import deque
from collections.abc import Callable
from contextlib import contextmanager

import numpy as np

import controllers
from twin.abb.egm import GuidanceSettings, Lateness, SensorMessage, decode_robot, encode_sensor
from twin.abb.egm.guidance.run import make_guidance
from twin.abb.egm.robot.guided_arm import GuidedArm
from twin.abb.egm.robot.session import Session, SessionPlan

BRISK = {"max_speed_deviation": 60.0, "ramp_time": 0.05}
"""Guidance settings for fast test motions."""

Answer = Callable[..., SensorMessage | None]
"""Function that returns a client's answer to a message of the robot."""


class Wire:
    """Channel to a client function, which is called with each message and answers at once.

    Attributes:
        messages: messages of the robot.
        to, port: what a virtual controller prints.
    """

    to, port = "the client", 0

    def __init__(self, answer: Answer) -> None:
        self.messages: list = []
        self.datagrams: list[bytes] = []
        self.strangers, self.stranger = 0, None
        self._answer = answer
        self._received: deque[bytes] = deque()

    def send(self, message: bytes) -> bool:
        self.datagrams.append(message)
        self.messages.append(decode_robot(message))
        answer = self._answer(self.messages[-1])
        self._received += self.transmit([] if answer is None else [encode_sensor(answer)])
        return True

    def transmit(self, datagrams: list[bytes]) -> list[bytes]:
        """Return the datagrams that arrive."""
        return datagrams

    def receive(self, most: int) -> list[bytes]:
        return [self._received.popleft() for _ in range(min(most, len(self._received)))]

    def wait(self, seconds: float) -> None:
        pass

    def refused(self) -> bool:
        return False

    def close(self) -> None:
        pass


class FaultyWire(Wire):
    """Channel that loses 30 % of the answers, duplicates, delays and truncates others, and adds random bytes.

    Args:
        answer: function that returns the client's answer.
        noise: number of random datagrams per message; some are answers with one changed byte.
        seed: seed of the random numbers.
    """

    def __init__(self, answer: Answer, noise: int, seed: int = 0) -> None:
        super().__init__(answer)
        self.random, self.noise = np.random.default_rng(seed), noise
        self._delayed: list[tuple[int, bytes]] = []
        self._noise = [self.random.bytes(size) for size in self.random.integers(1, 60, 5000)]

    def transmit(self, datagrams: list[bytes]) -> list[bytes]:
        now, random = len(self.messages), self.random
        for datagram in datagrams:
            lost, double, late, cut = random.random(4)
            if lost < 0.3:
                continue
            when = now + (int(random.integers(1, 8)) if late < 0.2 else 0)
            whole = datagram[: random.integers(len(datagram))] if cut < 0.1 else datagram
            self._delayed += [(when, whole)] * (1 + (double < 0.2))
        here = [datagram for when, datagram in self._delayed if when <= now]
        self._delayed = [(when, datagram) for when, datagram in self._delayed if when > now]
        first = now * self.noise % (len(self._noise) - self.noise)
        noise = self._noise[first : first + self.noise]
        if datagrams and noise and random.random() < 0.1:
            changed = bytearray(datagrams[0])
            changed[int(random.integers(len(changed)))] = int(random.integers(256))
            noise[0] = bytes(changed)
        return here + noise


class CycleByCycle:
    """Virtual time without waiting: each cycle reads the answers that have already arrived."""

    virtual = True

    def begin(self) -> None:
        pass

    def sending(self) -> None:
        pass

    def new_delay(self) -> str:
        return ""

    def sent(self, inbox) -> None:
        inbox.listen()

    def wait(self, inbox, again, stopping) -> bool:
        return not stopping()

    def lateness(self) -> Lateness:
        return Lateness()


@contextmanager
def session(robot, wire, settings=None, *, law=None, start=None, T_flange_tool=None, path=None, **options):
    """Provide a session that has not begun; `options` are those of `SessionPlan` and `GuidedArm`."""
    settings = GuidanceSettings(**BRISK) if settings is None else settings
    tool = np.eye(4) if T_flange_tool is None else T_flange_tool
    of_plan = [name for name in options if name in SessionPlan.__dataclass_fields__]
    plan = SessionPlan(**{"lag": 0.0, **{name: options.pop(name) for name in of_plan}})
    law = controllers.make("computed_torque", robot) if law is None else law
    guidance = make_guidance(robot, settings, tool, path)
    start = np.zeros(robot.n) if start is None else start
    arm = GuidedArm(robot, law, start, keep=plan.keep, **options)
    named = {"partner": "the client", "T_flange_tool": tool, "start": getattr(guidance, "start", None)}
    made = Session(arm, settings, guidance, wire, CycleByCycle(), plan, **named)
    made.rehearse()
    try:
        yield made
    finally:
        arm.close()


def run_session(robot, wire, settings=None, **options):
    """Run a session to its end and return it."""
    with session(robot, wire, settings, **options) as made:
        made.serve(lambda: False)
    return made
