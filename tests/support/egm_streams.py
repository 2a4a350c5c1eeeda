"""Streams of robots' messages, of arms that are excited, without a wire."""

from dataclasses import replace

import numpy as np

import twin
from scenarios import excitation
from tests.support.processor_times import shared
from twin.egm import RobotMessage

PAYLOAD = "3,0.02,-0.01,0.06,0.010,0.012,0.008,0,0,0"
TRUE_PAYLOAD = np.array([float(x) for x in PAYLOAD.split(",")])
CYCLE = 0.004
TORQUE_AGE = 0.75
"""Of the torques: means of two steps of 2 ms, and its torque of a step is that of its beginning, where
the second difference of its positions is: of means over the cycle that went on in between it would be 0.5."""


@shared
def excited_log(duration=20.0, **settings):
    """A log of the engine in which the IRB 140 is excited, with 3 kg on its flange, at steps of 2 ms."""
    settings = {"payload": PAYLOAD, "drives": "rigid", "time_step": 0.002} | settings
    return excitation.run(excitation.Config(robot="irb140", periods=round(duration / 5.0), **settings))


def messages(log, *, noise=0.0, torque=True, first=7, seed=3, period=CYCLE):
    """What the robot of a log tells of it, a message a cycle, from one number on."""
    step = round(CYCLE / (log.t[1] - log.t[0]))
    q, q_ref = log.q[::step], log.q_ref[::step]
    cycles = log.tau[:-1].reshape(-1, step, log.robot.n).mean(axis=1)  # the last sample has no step
    tau = np.concatenate([cycles[:1], cycles])
    q = q + noise * np.random.default_rng(seed).normal(size=q.shape)
    return [
        RobotMessage(
            seqno=(first + k) % 2**32, tm=int(1e3 * period * k) + 5000, q=q[k], q_planned=q_ref[k],
            T=np.eye(4), T_planned=np.eye(4), time=1e9 + period * k, tau=tau[k] if torque else None,
        )
        for k in range(len(q))
    ]  # fmt: skip


def model_of(log):
    """The arm that knows of no payload."""
    return log.robot.with_payload(None)


def reports_of(mirror, stream, arrivals=None):
    """The reports that a mirror makes of a stream."""
    times = [None] * len(stream) if arrivals is None else arrivals
    reports = [mirror.take(message, time) for message, time in zip(stream, times, strict=True)]
    return [report for report in reports if report is not None]


def without(stream, places):
    """A stream from which some messages were lost."""
    lost = set(places)
    return [message for place, message in enumerate(stream) if place not in lost]


def at_rest(robot, q, tau, count=500):
    """A robot that stands where it is and reports one torque."""
    q = np.asarray(q, dtype=float)
    return [RobotMessage(k, 4 * k, q, q, tau=tau) for k in range(count)]


def renumbered(stream, first, tm):
    """The same messages with other numbers and times, of a robot that was started anew."""
    shift = tm - stream[0].tm
    return [replace(m, seqno=first + k, tm=m.tm + shift) for k, m in enumerate(stream)]


def irb140(drives="ideal"):
    return twin.load("irb140").with_drives(drives)
