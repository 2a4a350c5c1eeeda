"""EGM robot in real time: lateness of its messages, delay of answers, and processor load."""

import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

import controllers
from tests.bench.timing import Meter, Row
from twin.abb.egm import EgmRobot, GuidanceSettings, SessionPlan
from twin.abb.egm.robot.session import LAG
from twin.physics.robot.robot import Robot

CYCLE = 4000.0  # us

CLIENT = """
import numpy as np
from twin.abb.egm import EgmClient, SensorMessage, encode_sensor
from twin.base.errors import EgmError
encode_sensor(SensorMessage(0, q=np.zeros(6)))  # load now what is loaded at first use
with EgmClient(0, timeout=30.0) as client:
    print(client.port, flush=True)
    try:
        for message in client:
            away = 0.3 * np.sin(1.5 * message.time)
            client.send_joints(np.full(6, away))
            client.timeout = 1.0
    except EgmError:
        pass  # the robot has stopped
"""
"""Program of a separate process that answers each message; the first answer has number 1."""


def rows(robot: Robot, meter: Meter) -> Iterator[Row]:
    """Measure a minute of joint guidance against one cycle, and against 1 ms, the limit for lateness.

    Answers act at once, to measure what the twin adds.  By default it adds the lag of a real controller.
    """
    duration = 1.0 if meter.is_short else 60.0  # s
    client = subprocess.Popen([sys.executable, "-c", CLIENT], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    port = int(client.stdout.readline())
    settings = GuidanceSettings(max_speed_deviation=60.0, ramp_time=0.05, cond_time=1000.0)
    law = controllers.make("computed_torque", robot)
    with EgmRobot(robot, law, settings, SessionPlan(duration=duration, lag=0), to=("127.0.0.1", port)) as arm:
        start, spent = time.perf_counter(), time.process_time()
        arm.wait()
        share = (time.process_time() - spent) / (time.perf_counter() - start)
    client.wait()
    result = arm.result
    assert result.log is not None
    assert not result.faults, result.faults
    assert np.ptp(result.log.q, axis=0).min() > 0.1
    print(f"{duration:g} s of a robot on the wire: {result.lateness}; {result.counts}")
    p99 = 1e6 * result.lateness.percentile_99
    yield Row(
        f"lateness of messages, {robot.name}, 99 of 100 in {duration:g} s", "1 ms",
        p99, 1000.0, p99 / 1000.0, p99 / 1000.0, p99 / 1000.0, 1.0,
    )  # fmt: skip
    taken = result.log.arrays["egm_taken"]
    delays = np.flatnonzero(taken) - (result.log.arrays["egm_seqno"][taken] - 1)
    least, median, most = (float(value) for value in np.percentile(delays, [0, 50, 99]))
    yield Row(
        f"from a message to its motion, lag 0 (default {LAG:g} ms)", "one cycle",
        CYCLE * median, CYCLE, median, least, most, 1.0,
    )  # fmt: skip
    yield Row(
        "processor of a robot on the wire, a cycle", "the cycle, one core",
        CYCLE * share, CYCLE, share, share, share, None,
    )  # fmt: skip
