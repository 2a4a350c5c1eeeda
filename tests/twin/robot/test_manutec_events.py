"""The published runs of the Manutec r3's drive train, with friction's changes of mode as events.

Arm and drives are the library's, from the robot's file; what is compared are the Modelica Association's
reference results of RobotR3's FullRobot (github.com/modelica/MAP-LIB_ReferenceResults, d6a2b9b).
"""

from itertools import pairwise

import numpy as np

import twin
from tests.published.manutec_r3 import (
    ANGLES,
    INSTANTS,
    KP,
    KS,
    LOAD,
    REST,
    TORQUE_CONSTANTS,
    TS,
    published_move,
)
from tests.support.manutec_events import Arm, Control, Motor, Simulation

MODES = {"F": 1, "S": 0, "B": -1}  # forward, stuck, backward: of the motors of axes 1 to 3, the joints 4 to 6
# fmt: off
CHANGES = {
    1: ("SBFSB", [0.000749, 1.354953, 1.483202, 1.618159]),
    2: ("SBFSBSFSBSB", [0.000629, 1.354177, 1.446085, 1.456996, 1.486799,
                        1.516478, 1.521938, 1.546593, 1.599031, 1.628160]),
    3: ("SBSFSBSBSB", [0.001546, 1.349720, 1.350380, 1.445045, 1.452268,
                       1.492577, 1.545988, 1.598731, 1.631914]),
    4: ("SFSBS", [0.004361, 1.348686, 1.352709, 1.444942]),
    5: ("SFBSB", [0.001963, 1.356847, 1.383938, 1.432874]),
    6: ("SFSF", [0.004667, 1.355057, 1.356847]),
}
# fmt: on
MOTORS = Motor(
    k=np.array(TORQUE_CONSTANTS),
    w=np.array([4590.0, 5500.0, 5500.0, 6250.0, 6250.0, 7400.0]),
    damping=np.array([0.6, 0.6, 0.6, 0.55, 0.55, 0.27]),
)
CONTROL = Control(KP, KS, TS)


def smooth(move):
    """A trapezoidal move as `Simulation` takes it: a function of one time, and the times of its kinks."""
    way, T, ramp = move.q1 - move.q0, move.duration, move.acceleration_time
    cruise = 1 / (T - ramp)

    def reference(t):
        if t < ramp:
            s, sd = cruise / ramp * t**2 / 2, cruise / ramp * t
        elif t < T - ramp:
            s, sd = cruise * (t - ramp / 2), cruise
        else:
            left = max(T - t, 0.0)
            s, sd = 1 - cruise / ramp * left**2 / 2, cruise / ramp * left
        return move.q0 + way * s, way * sd

    return reference, [ramp, T - ramp, T, T + REST]


def largest_distance(changes, axis, sense, published):
    """How far at most a change of an axis is from its published time, in [s]; its modes are as published."""
    modes, times = published
    own = [change for change in changes if change.axis == axis]
    wanted = [(sense * MODES[before], sense * MODES[after]) for before, after in pairwise(modes)]
    assert [(change.before, change.after) for change in own] == wanted
    return np.max(np.abs([change.t for change in own] - np.array(times)))


def test_the_arm_is_where_the_reference_results_have_it_and_changes_its_modes_when_they_do():
    """Integrate the six axes with an event at each of the 34 changes, which takes 8 s."""
    robot = twin.load("manutec_r3").with_payload(LOAD)
    arm = Arm(
        lambda q: twin.mass_matrix(robot, q), lambda q, qd: twin.inverse_dynamics(robot, q, qd, np.zeros(6))
    )
    reference, kinks = smooth(published_move(robot))
    simulation = Simulation(arm, robot.drives, MOTORS, CONTROL, reference, kinks)
    state, changes = simulation.run(robot.poses["start"], INSTANTS)
    np.testing.assert_allclose(state.q, ANGLES, rtol=0, atol=1e-8)  # the reference's own error; seen 4e-9
    assert len(changes) == 34
    for axis, published in CHANGES.items():
        sense = -1 if axis == 1 else 1  # its motor turns against its joint; the others of CHANGES do not
        assert largest_distance(changes, axis, sense, published) < 1e-6
