"""Siciliano et al. 2009, problems 8.12 and 8.14: a two-link arm with a load unknown to the controller.

Both links: 1 m, 50 kg in the middle, 10 kg m^2 about it.  Both motors: 5 kg, 0.01 kg m^2, 0.01 N m s/rad,
gear 100; motor 2 is at joint 2 and rides on link 1, so that its rotor turns by `q1 + 100 q2`.  The load of
10 kg is a point at the tip.  The arm moves in a vertical plane, with q1 from the horizontal.  It goes from
(0, pi/4) to (pi/2, pi/2) in 1 s, at up to 3 pi/4 and pi/3 rad/s with trapezoidal speeds, and then stands
until 2.5 s.  The controllers act every millisecond.

Sources: B. Siciliano, L. Sciavicco, L. Villani, G. Oriolo, "Robotics: Modelling, Planning and Control"
(2009), chapter 8, problems 8.12 and 8.14; the authors' solution files, which have the data, the gains, and
the axes of the figures.
"""

from functools import cache
from typing import Any

import numpy as np

import twin
from controllers.computed_torque import ComputedTorque
from tests.published.items import Finding, Item, against_printed, computes
from twin.data.logs.closed_loop import run_closed_loop
from twin.data.logs.log import Log
from twin.physics.robot.dh_tables import LinkBody, dh_robot
from twin.physics.robot.robot import DH
from twin.physics.trajectories.joint_trajectories import timed_trapezoid
from twin.physics.trajectories.sampling import Reference, Samples, State

PERIOD, END = 1e-3, 2.5
LOAD = 10.0
STEPS = 20
"""Steps of the plant in a control period; their error, of first order, is 2e-5 rad in problem 8.12."""

FILLED = 0.4
"""Share of a figure's axis that a curve fills at least: axes are chosen in steps of about two."""


@cache
def arm(load: float = 0.0) -> twin.Robot:
    """Return the arm with a point load at its tip, in [kg]."""
    motor, link, middle, inertia = 5.0, 50.0, -0.5, 10.0
    centre = link * middle / (link + motor)  # of link 1 and motor 2, from joint 2
    first = inertia + link * (middle - centre) ** 2 + motor * centre**2
    bodies = [
        LinkBody(link + motor, (centre, 0.0, 0.0), np.diag([0.0, first, first])),
        LinkBody(link, (middle, 0.0, 0.0), np.diag([0.0, inertia, inertia])),
    ]
    drives = twin.Drives(
        ratio=[100.0, 100.0], rotor_inertia=0.01, coupling=[[1.0, 0.0], [0.01, 1.0]],
        viscous=0.01 * 100.0**2, friction_at=("joint", "joint"),
    )  # fmt: skip
    none = np.zeros(2)
    bare = dh_robot("two_link_arm", DH(none, none, np.ones(2), none), bodies=bodies)
    robot = bare.with_gravity((0.0, -9.81, 0.0)).with_drives("rigid", drives)
    return robot.with_payload(twin.Payload(load)) if load else robot


def reference() -> Samples:
    """Return the move, sampled every millisecond."""
    t = PERIOD * np.arange(round(END / PERIOD) + 1, dtype=np.float64)
    ends = ((0.0, np.pi / 2, 9 * np.pi / 4), (np.pi / 4, np.pi / 2, 4 * np.pi / 3))
    moves = [timed_trapezoid([start], [end], 1.0, acceleration) for start, end, acceleration in ends]
    parts = zip(*(move(t) for move in moves), strict=True)
    return Samples(t, *(np.concatenate(part, axis=1) for part in parts))


class AdaptiveLoad:
    """Adaptive control of an unknown load at the tip, as in problem 8.14.

    With `v = qd_ref + L (q_ref - q)`, its derivative a, `s = v - qd`, and the torque y of a load of 1 kg:

        tau = M a + C v + F v + g + m y(q, qd, v, a) + Kd s,    dm/dt = y^T s / K.

    Args:
        robot: arm without its load.
        loaded: arm with a load of 1 kg.
        L: rate of the error, in [1/s].
        Kd: gain of s, in [N m s/rad].
        K: gain of the estimate, in [J/kg^2].
    """

    def __init__(self, robot: twin.Robot, loaded: twin.Robot, L: float, Kd: float, K: float) -> None:
        self.robot, self.loaded, self.L, self.Kd, self.K = robot, loaded, L, Kd, K
        self.reset()

    def reset(self) -> None:
        """Forget the load."""
        self.mass = 0.0
        self.masses: list[float] = []

    def __call__(self, state: State, ref: Reference) -> np.ndarray:
        """Return the torque (2,)."""
        v = ref.qd + self.L * (ref.q - state.q)
        a = ref.qdd + self.L * (ref.qd - state.qd)
        s = v - state.qd
        drives = self.robot.drives
        assert drives is not None
        torques = [
            twin.mass_matrix(one.arm, state.q) @ a
            + twin.coriolis_matrix(one.arm, state.q, state.qd) @ v
            + twin.gravity_torque(one.arm, state.q)
            for one in (self.robot, self.loaded)
        ]
        y = torques[1] - torques[0]
        self.masses.append(self.mass)
        tau = torques[0] + drives.reflected_inertia @ a + drives.viscous * v + self.mass * y + self.Kd * s
        self.mass += PERIOD * float(y @ s) / self.K
        return tau


def run(law: Any, steps_per_period: int = STEPS) -> Log:
    """Run a controller on the arm with its load."""
    plant = twin.AnalyticPlant(arm(LOAD), PERIOD / steps_per_period)
    return run_closed_loop(plant, law, reference(), steps_per_period=steps_per_period)


def largest_errors(log: Log) -> np.ndarray:
    """Return the largest errors (2,) of the joints, in [rad]."""
    return np.max(np.abs(log.q_ref - log.q), axis=0)


def computed_torque(model: twin.Robot, inputs: dict[str, Any]) -> ComputedTorque:
    """Return the law of problem 8.12, with friction at the measured speed."""
    return ComputedTorque(model, Kp=inputs["Kp"], Kv=inputs["Kd"], period=1e-9)


def adaptive(inputs: dict[str, Any]) -> AdaptiveLoad:
    """Return the law of problem 8.14."""
    return AdaptiveLoad(arm(), arm(1.0), inputs["L"], inputs["Kd"], inputs["K"])


def within_axis(item: Item, errors: np.ndarray) -> Finding:
    """Return the largest error as the residual; infinite if it fills too little of the figure's axis."""
    worst = float(np.max(errors))
    return Finding(errors, worst if worst > FILLED * item.tolerance else np.inf)


@computes("S-8.12", "S-8.12m")
def inverse_dynamics(item: Item) -> Finding:
    """Run computed torque without and with the load in its model."""
    model = arm(LOAD) if item.inputs["load_known"] else arm()
    return within_axis(item, largest_errors(run(computed_torque(model, item.inputs))))


@computes("S-8.14")
def errors_of_adaptive_control(item: Item) -> Finding:
    """Run the adaptive controller, which begins without a load."""
    return within_axis(item, largest_errors(run(adaptive(item.inputs))))


@computes("S-8.14m")
def adapted_load(item: Item) -> Finding:
    """Compute the estimate of the load at the end; its largest value must be within the figure's axis."""
    law = adaptive(item.inputs)
    run(law)
    found = against_printed(item, law.masses[-1])
    axis = item.inputs["axis"]
    return found if FILLED * axis < max(law.masses) < axis else Finding(found.computed, np.inf)
