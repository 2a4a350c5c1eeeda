"""A process whose locale writes numbers with a comma: C libraries then read "0.5" as 0."""

import subprocess

import pytest

from tests.support.forks import NUMBA, Fork

pytestmark = pytest.mark.locale

SCRIPT = r"""
import locale
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
assert locale.localeconv()["decimal_point"] == ","
import numpy as np
import twin
from twin.physics.engine.simulation import Simulation
from twin.physics.robot.evaluation import uncompiled

robot = uncompiled(twin.load("irb140"))
q = np.linspace(0.1, 0.6, 6)
with Simulation(robot) as simulation:
    simulation.reset(q)
    T = simulation.tool_pose()
    seen = (simulation.picture(64, 48) < 255).any(axis=2).sum()
    simulation.step(np.ones(6))
    speeds = simulation.state()[1]
np.testing.assert_allclose(T, twin.forward_kinematics(robot, q), atol=1e-13)
expected = 1e-3 * twin.forward_dynamics(robot, q, np.zeros(6), np.ones(6))
np.testing.assert_allclose(speeds, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))
assert seen > 50, seen

header, rows = "t;x;y;z;a;b;c;d\n", "0.5;0.25;0;0;1;0;0;0\n1.5;0.5;0;0;1;0;0;0\n"
for text in (header + rows, header + rows.replace(".", ","), (header + rows).replace(";", ",")):
    with open("path.csv", "w") as file:
        file.write(text)
    recorded = twin.read_recording("path.csv")
    assert recorded.t.tolist() == [0.5, 1.5] and recorded.poses[0, 0] == 0.25, recorded
twin.write_recording("written.csv", recorded)
assert open("written.csv").readlines()[1] == "0.5,0.25,0.0,0.0,1.0,0.0,0.0,0.0\n"
print("done")
"""


def test_a_decimal_comma_moves_nothing(tmp_path):
    command = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")]
    subprocess.run(command, check=True, capture_output=True)
    ended = Fork(f"import os\nos.chdir({str(tmp_path)!r})\n{SCRIPT}", NUMBA, LOCPATH=str(tmp_path)).wait()
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
