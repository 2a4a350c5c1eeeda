"""Message streams of robots under excitation, without a network."""

from dataclasses import replace

import numpy as np

import twin
from tests.support import tasks
from tests.support.processor_times import shared
from twin.abb.egm import RobotMessage

PAYLOAD = "3,0.02,-0.01,0.06,0.010,0.012,0.008,0,0,0"
TRUE_PAYLOAD = np.array([float(x) for x in PAYLOAD.split(",")])
CYCLE = 0.004
TORQUE_AGE = 0.75
"""Age of the torques, in cycles.

They are means over two steps of 2 ms, and the torque of a step refers to its beginning.  The age of a
continuous mean over the cycle would be 0.5.
"""


@shared
def excited_log(duration=20.0, **settings):
    """Return a log of the engine: excitation of the IRB 140 with a payload of 3 kg, in steps of 2 ms."""
    settings = {"payload": PAYLOAD, "drives": "rigid", "time_step": 0.002} | settings
    return tasks.run("excitation", robot="irb140", periods=round(duration / 5.0), **settings).log


def messages(log, *, noise=0.0, torque=True, first=7, seed=3, period=CYCLE):
    """Return the messages of the robot in a log, one per cycle, numbered from `first`."""
    step = round(CYCLE / (log.t[1] - log.t[0]))
    q, q_ref = log.q[::step], log.q_ref[::step]
    cycles = log.tau[:-1].reshape(-1, step, log.robot.n).mean(axis=1)  # the last sample has no step after it
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
    """Return the robot of a log without its payload."""
    return log.robot.with_payload(None)


def reports_of(mirror, stream, arrivals=None):
    """Return the reports of a mirror on a stream."""
    times = [None] * len(stream) if arrivals is None else arrivals
    reports = [mirror.take(message, time) for message, time in zip(stream, times, strict=True)]
    return [report for report in reports if report is not None]


def without(stream, places):
    """Return a stream without the messages at some places."""
    lost = set(places)
    return [message for place, message in enumerate(stream) if place not in lost]


def at_rest(robot, q, tau, count=500):
    """Return the messages of a robot at rest with constant torques."""
    q = np.asarray(q, dtype=float)
    return [RobotMessage(k, 4 * k, q, q, tau=tau) for k in range(count)]


def renumbered(stream, first, tm):
    """Return the messages with new numbers and times, as after a restart of the robot."""
    shift = tm - stream[0].tm
    return [replace(m, seqno=first + k, tm=m.tm + shift) for k, m in enumerate(stream)]


def irb140(drives="ideal"):
    return twin.load("irb140").with_drives(drives)
