"""Ctrl-C in a program of one's own: rollouts end at once, however endless the law is that they are in."""

import os
import signal
import time

from tests.support.forks import NUMBA, Fork

CODE = """
import signal
import numpy as np
import twin
from tests.support.short_runs import still
def law(state, reference, parameters, memory, model):
    x = 0.5
    while x > 0.0:
        x = 1.0 - x if parameters[0, 0] > 0.0 else -1.0
    return np.zeros(len(state.q))
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
robot = twin.load("two_link")
twin.run_rollouts(robot, twin.ControlLaw(robot, law, [0.0]), still(robot, 2))
print("compiled", flush=True)
try:
    twin.run_rollouts(robot, [twin.ControlLaw(robot, law, [1.0])] * 3, still(robot, 2))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_an_endless_law_does_not_keep_a_program_from_going_on():
    program = Fork(CODE, NUMBA)
    while program.running() and not program.read():
        time.sleep(0.05)
    time.sleep(0.3)
    began = time.monotonic()
    os.kill(program.pid, signal.SIGINT)
    ended = program.wait()
    assert (ended.returncode, ended.stdout) == (0, "compiled\ninterrupted\n")
    assert time.monotonic() - began < 10.0  # without the interrupt it never ends
