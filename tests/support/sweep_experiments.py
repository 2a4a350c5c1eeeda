"""Experiments that cost little, for tests of how sweeps are carried out: a short swing under PD."""

import os
import signal
import subprocess
import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import controllers
import twin
from twin.sweeps.design import Points
from twin.sweeps.trial import Trial
from twin.worker_processes import send_message

NAMES = ("payload", "bandwidth")


@cache
def _parts():
    robot = twin.load("irb140")
    swing = twin.quintic(np.zeros(robot.n), np.full(robot.n, 0.02), 0.1)
    return robot, twin.sample_semi_implicit(swing, 1e-3)


@dataclass(frozen=True)
class Swing:
    """A payload that the law does not know of; `folder` is where its trials leave traces."""

    folder: str = ""

    def nominal(self, name):
        return {"payload": 0.1, "bandwidth": 20.0}[name]

    def trial(self, values):
        robot, reference = _parts()
        arm = robot.with_payload(twin.Payload(values["payload"]))
        return Trial(arm, controllers.make("pd_gravity", robot, bandwidth=values["bandwidth"]), reference)


class Deadly(Swing):
    """One trial ends its process, when it is made for the first time."""

    def trial(self, values):
        mark = Path(self.folder, "died")
        if values["payload"] > 0.59 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().trial(values)


class Fatal(Swing):
    """One trial ends every process that makes it."""

    def trial(self, values):
        if values["payload"] > 0.59:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().trial(values)


class Slow(Swing):
    """Trials that leave a trace each, and take their time."""

    def trial(self, values):
        with Path(self.folder, "made").open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(0.02)
        return super().trial(values)


class Faulty(Swing):
    """A trial of which a mistake comes."""

    def trial(self, values):
        if values["payload"] > 0.59:
            raise ZeroDivisionError("a mistake of mine")
        return super().trial(values)


class Warned(Swing):
    """Trials that warn, all of the same."""

    def trial(self, values):
        print("loud")
        warnings.warn("beware", stacklevel=2)
        return super().trial(values)


def sleep_in_two_processes():
    """Say the ids of this process and of one that it begins, and sleep."""
    child = subprocess.Popen(["sleep", "600"])
    send_message((os.getpid(), child.pid))
    time.sleep(600)


def points(count, seed=1):
    """Points of which some cannot be made, for their payload is negative, and the last one is heavy."""
    random = np.random.default_rng(seed)
    values = np.column_stack([random.uniform(-0.02, 0.6, count), random.uniform(5.0, 40.0, count)])
    values[-1, 0] = 0.595
    return Points(NAMES, values, np.arange(count), np.arange(count) % 4)


COUNT = 70
POINTS = points(COUNT)
LIMITS = {"joint_error": 0.15}
