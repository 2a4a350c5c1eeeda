"""The arm nods: axis 5 goes down and up again.

Change `reference` to the motion that you want to try, and run it with any controllers:

    irb-twin run ./my_scenario.py --controller pd computed_torque --picture my_scenario.png
"""

from dataclasses import dataclass

import numpy as np

from scenarios import base
from scenarios.base import option, positive
from scenarios.checks.closed_loop import closed_loop
from scenarios.checks.tracking import follow, sampled, tracking_metrics
from twin.trajectories.joint_trajectories import quintic, sequence


@dataclass(frozen=True)
class Config(base.Config):
    """Settings, each an option of the command line: `--angle 0.3`; more are in `base.Config`."""

    angle: float = option(0.5, "how far axis 5 goes, in rad")
    duration: float = option(1.0, "of the way down, and of the way up, in s")

    def __post_init__(self):
        """Refuse what makes no sense."""
        super().__post_init__()
        positive(self.duration, "duration", "s")


def reference(robot, config):
    """What the arm is to follow, of a nominal robot that carries nothing yet; `twin.Samples`."""
    up, down = np.zeros((2, robot.n))
    down[4] = config.angle
    path = sequence(quintic(up, down, config.duration), quintic(down, up, config.duration))
    return sampled(config, path)


def run(config):
    """Carry it out; a `twin.Log`."""
    return follow(config, *closed_loop(config, reference))


def metrics(log):
    """What is said of a run, and judged: figures with limits, `base.Metric`."""
    return tracking_metrics(log)
