"""Ctrl-C in a program of one's own: rollouts end at once, however endless the law is that they are in."""

import signal
import subprocess
import sys
import time

CODE = """
import numpy as np
import twin
from tests.support.short_runs import still
def law(state, reference, parameters, memory, model):
    x = 0.5
    while x > 0.0:
        x = 1.0 - x if parameters[0, 0] > 0.0 else -1.0
    return np.zeros(len(state.q))
robot = twin.load("two_link")
twin.run_rollouts(robot, twin.ControlLaw(robot, law, [0.0]), still(robot, 2))
print("compiled", flush=True)
try:
    twin.run_rollouts(robot, [twin.ControlLaw(robot, law, [1.0])] * 3, still(robot, 2))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_an_endless_law_does_not_keep_a_program_from_going_on():
    program = subprocess.Popen(
        [sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background ignores it
    )  # fmt: skip
    assert program.stdout is not None
    assert program.stdout.readline() == "compiled\n"
    time.sleep(0.3)
    began = time.monotonic()
    program.send_signal(signal.SIGINT)
    assert program.stdout.readline() == "interrupted\n"
    assert program.wait(timeout=20) == 0
    assert time.monotonic() - began < 10.0  # without the interrupt it never ends
    program.stdout.close()
