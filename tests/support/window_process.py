"""Scripts that run in a separate process, which shows PyBullet's window."""

import os
import subprocess
import sys
import textwrap

PREAMBLE = """
import os
import signal
import time
import warnings
import numpy as np
import twin
from tests.support.xwindow import Display
from twin.control.closed_loop import run_closed_loop
from twin.dynamics.equation_of_motion import gravity_torque
from twin.engine.simulation import Simulation
from twin.errors import DriveWarning, TwinError
from twin.trajectories.sampling import sample
from twin.trajectories.joint_trajectories import hold, quintic

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background process ignores it
TITLE = "Bullet Physics"
warnings.simplefilter("ignore", DriveWarning)  # springs that the steps do not resolve
robot = twin.load("irb140")
hold_still = lambda state, reference: gravity_torque(robot, state.q)
"""


def run(script, display):
    environment = os.environ | ({"DISPLAY": display} if display else {})
    if not display:
        environment.pop("DISPLAY", None)
    return subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
    )


def passes(script, display):
    result = run(script, display)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout
