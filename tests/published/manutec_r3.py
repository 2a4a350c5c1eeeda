"""Published move of the Manutec r3: its load, its reference, its controllers and its joint angles.

Source: Modelica Standard Library, RobotR3 `FullRobot` (BSD-3-Clause). The joint angles are some of the
Modelica Association's reference results of that model (github.com/modelica/MAP-LIB_ReferenceResults at
d6a2b9b, Modelica/Mechanics/MultiBody/Examples/Systems/RobotR3/FullRobot/FullRobot.csv). Computed by Dymola
2020x with a tolerance of 1e-6, they are accurate to some 5e-9 rad.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from twin.physics.robot.robot import Payload, Robot

if TYPE_CHECKING:
    from controllers.cascade import Cascade
    from twin.physics.trajectories.joint_trajectories import Trapezoid

NAME = "manutec_r3"

LOAD = Payload(15.0, (0.1, -0.1, 0.25), np.diag([0.001, 0.001, 0.001]))
"""Load in the flange frame of this project.

In the library's frame, whose y axis is along axis 6, the centre of mass is at (0.1, 0.25, 0.1) m.
"""

SPEEDS = (3.0, 1.5, 5.0, 3.1, 3.1, 4.1)  # rad/s, of the reference
ACCELERATIONS = (15.0, 15.0, 15.0, 60.0, 60.0, 60.0)  # rad/s^2
REST = 0.5  # s, after the reference has ended

KP = 5.0  # 1/s, from the position's error to a speed
KS = 0.5  # A s/rad, from the speed's error to a current
TS = 0.05  # s, of the integral of the speed's error
TORQUE_CONSTANTS = (1.1616, 1.1616, 1.1616, 0.2365, 0.2608, 0.0842)  # N m/A

INSTANTS = np.array([0.1, 0.4, 0.8, 1.2, 1.354, 1.4, 1.5, 1.856])
"""(8,) times in [s]: two during acceleration, two at constant speed, the rest about and after the stop."""

ANGLES = np.array(
    [
        [-0.985523334102, 0.302503538921, 1.51210953617, 0.0285985376694, -1.78472565733, 0.0214596498895],
        [-0.467872853163, -0.0838088585657, 0.967665140172, 0.21565123261, -0.8624060677, 0.216675304657],
        [0.20511254567, -0.593344958482, 0.260098083566, 0.471140862848, 0.37701894519, 0.470746667761],
        [0.883194775852, -1.10138728025, -0.441628505639, 0.724806071133, 1.61648089219, 0.724515484712],
        [1.05211388789, -1.22858418059, -0.62191686642, 0.787915941035, 1.9234425725, 0.783359188407],
        [1.04734784117, -1.22290197915, -0.612710176676, 0.78649014464, 1.92297829852, 0.78421429755],
        [1.04628059278, -1.2230926048, -0.608789702275, 0.784784107811, 1.92203138082, 0.784971533082],
        [1.04682232642, -1.22364719683, -0.610907884558, 0.784784107811, 1.92023468212, 0.785339108819],
    ]
)
"""(8, 6) joint angles at `INSTANTS`, in [rad]."""


def published_move(robot: Robot) -> Trapezoid:
    """Return the reference, from the pose `start` to the pose `end`."""
    from twin.physics.trajectories.joint_trajectories import trapezoid

    return trapezoid(robot.poses["start"], robot.poses["end"], SPEEDS, ACCELERATIONS)


def published_law(robot: Robot, period: float) -> Cascade:
    """Return the published controllers: at the joints, `Kv = N^2 ks k`, without a model of the arm.

    At the start the motors carry the arm. The motors of elastic joints are `g / K` ahead of their joints. The
    position loops see this as an error, and the initial integrals compensate for it.

    Args:
        robot: robot with drives that are not ideal.
        period: control period, in [s].
    """
    from controllers.cascade import Cascade
    from twin.physics.dynamics.equation_of_motion import gravity_torque

    drives = robot.active_drives
    assert drives is not None
    g = gravity_torque(robot, robot.poses["start"])
    Kv = drives.ratio**2 * KS * np.array(TORQUE_CONSTANTS)
    hold = g + Kv * KP * g / drives.stiffness
    return Cascade(robot, period=period, kp=KP, Kv=Kv, Ti=TS, feed_forward=False, tau_hold=hold)
