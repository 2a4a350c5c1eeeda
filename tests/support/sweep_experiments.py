"""Cheap experiments for tests of sweeps: a short swing under PD control."""

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
from twin.base.worker_processes import send_message
from twin.studies.sweeps.design import Points
from twin.studies.sweeps.trial import Trial

NAMES = ("payload", "bandwidth")


@cache
def _parts():
    robot = twin.load("irb140")
    swing = twin.quintic(np.zeros(robot.n), np.full(robot.n, 0.02), 0.1)
    return robot, twin.sample_semi_implicit(swing, 1e-3)


@dataclass(frozen=True)
class Swing:
    """Experiment with a payload unknown to the controller; trials write marker files to `folder`."""

    folder: str = ""

    def nominal(self, name):
        return {"payload": 0.1, "bandwidth": 20.0}[name]

    def trial(self, values):
        robot, reference = _parts()
        arm = robot.with_payload(twin.Payload(values["payload"]))
        return Trial(arm, controllers.make("pd_gravity", robot, bandwidth=values["bandwidth"]), reference)


class Deadly(Swing):
    """Experiment with a trial that kills its process on the first attempt."""

    def trial(self, values):
        mark = Path(self.folder, "died")
        if values["payload"] > 0.59 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().trial(values)


class Fatal(Swing):
    """Experiment with a trial that kills its process on every attempt."""

    def trial(self, values):
        if values["payload"] > 0.59:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().trial(values)


class Slow(Swing):
    """Experiment with trials that take 20 ms each and append to a marker file."""

    def trial(self, values):
        with Path(self.folder, "made").open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(0.02)
        return super().trial(values)


class Faulty(Swing):
    """Experiment with a trial that raises an error."""

    def trial(self, values):
        if values["payload"] > 0.59:
            raise ZeroDivisionError("a mistake of mine")
        return super().trial(values)


class Warned(Swing):
    """Experiment with trials that all print and issue the same warning."""

    def trial(self, values):
        print("loud")
        warnings.warn("beware", stacklevel=2)
        return super().trial(values)


def sleep_in_two_processes():
    """Report the ids of this process and of a child process, and sleep."""
    child = subprocess.Popen(["sleep", "600"])
    send_message((os.getpid(), child.pid))
    time.sleep(600)


def points(count, seed=1):
    """Draw points; those with a negative payload are invalid, and the last one has a heavy payload."""
    random = np.random.default_rng(seed)
    values = np.column_stack([random.uniform(-0.02, 0.6, count), random.uniform(5.0, 40.0, count)])
    values[-1, 0] = 0.595
    return Points(NAMES, values, np.arange(count), np.arange(count) % 4)


COUNT = 70
POINTS = points(COUNT)
LIMITS = {"joint_error": 0.15}
