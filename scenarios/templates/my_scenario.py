"""Nod with the arm: move axis 5 down and up again.

Replace the motion in `reference` by yours, and run it with any controllers:

    irb-twin run ./my_scenario.py --controller pd computed_torque --picture my_scenario.png
"""

from dataclasses import dataclass

import numpy as np

from scenarios import base
from scenarios.judging.closed_loop import closed_loop
from scenarios.judging.tracking import follow, sampled, tracking_metrics
from scenarios.option import option, positive
from twin.trajectories.joint_trajectories import quintic, sequence


@dataclass(frozen=True)
class Config(base.Config):
    """Settings, each an option of the command line, as `--angle 0.3`; `base.Config` adds more."""

    angle: float = option(0.5, "travel of axis 5, in rad")
    duration: float = option(1.0, "duration of the motion down, and of the motion up, in s")

    def __post_init__(self):
        """Raise an error for invalid settings."""
        super().__post_init__()
        positive(self.duration, "duration", "s")


def reference(robot, config):
    """Return the desired motion of the nominal robot without a payload, as `twin.Samples`."""
    up, down = np.zeros((2, robot.n))
    down[4] = config.angle
    path = sequence(quintic(up, down, config.duration), quintic(down, up, config.duration))
    return sampled(config, path)


def run(config):
    """Run the closed loop; return a `twin.Log`."""
    return follow(config, *closed_loop(config, reference))


def metrics(log):
    """Return the figures of a run and their limits, as `base.Metric`."""
    return tracking_metrics(log)


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))
