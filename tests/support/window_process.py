"""Scripts in processes of their own that show PyBullet's window."""

from tests.support.forks import Fork

PREAMBLE = """
import os
import signal
import threading
import time
import warnings
import numpy as np
import twin
from controllers import make
from scenarios import joint_tracking, parallelogram
from scenarios.bench import free_bench
from scenarios.bench import log_window as replay
from scenarios.shell import command_line
from scenarios.shell import process
from tests.support.xwindow import *
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.dynamics.equation_of_motion import gravity_torque
from twin.physics.dynamics.wrenches import joint_wrenches
import twin.physics.engine.window.controls
from twin.physics.engine.simulation import Simulation
from twin.base.errors import DriveWarning, PayloadWarning, TwinError
from twin.physics.trajectories.sampling import sample
from twin.physics.trajectories.joint_trajectories import hold, quintic

TITLE = "Bullet Physics"
warnings.simplefilter("ignore", DriveWarning)  # springs that the steps do not resolve
warnings.simplefilter("ignore", PayloadWarning)
robot = twin.load("irb140")
hold_still = lambda state, reference: gravity_torque(robot, state.q)
# Load what every window needs, once.
for arm in (robot, robot.with_drives("elastic"), twin.load("irb1400").with_drives("elastic")):
    with Simulation(arm) as simulation:
        run_closed_loop(simulation, make("computed_torque", arm), sample(hold(np.zeros(6), 0.01), 1e-3))
        q = simulation.state()[0]
        joint_wrenches(arm, q, q, twin.forward_dynamics(arm.arm, q, q, q))
        simulation.picture(32, 24)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background process ignores it
"""


def run(script, display):
    return Fork(script, PREAMBLE, DISPLAY=display).wait()


def passes(script, display):
    result = run(script, display)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout
