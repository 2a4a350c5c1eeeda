"""Runs of joint guidance without a network."""

import numpy as np

from twin.abb.egm.guidance.guidance import Fault, JointGuidance
from twin.abb.egm.guidance.run import Phase, Run
from twin.abb.egm.guidance.settings import GuidanceSettings

DT = 1e-3
FAST = {"max_speed_deviation": 1000.0, "ramp_time": 0.005}
LOST = Fault(41822, "No data from the UdpUc device", "no message for 2 s")
EXACT = {"rtol": 0.0, "atol": 1e-13}
HOME = np.deg2rad([10.0, -20.0, 30.0, -40.0, 50.0, 60.0])


def run_of(robot, q=HOME, period=DT, **arguments):
    chosen = GuidanceSettings(**arguments)
    return Run(robot, chosen, JointGuidance(robot, chosen), q, period)


def to_the_end(run, cycles=5000):
    """Run cycles until the run has finished, with an arm that follows exactly; return all samples."""
    parts = []
    for _ in range(cycles):
        run.measured(run.q, 0.004)
        parts.append(run.samples(4))
        if run.phase is Phase.FINISHED:
            break
    return [np.concatenate(series) for series in zip(*parts, strict=True)]
