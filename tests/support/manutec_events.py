"""Arms with published drives, integrated with an event at every change of a friction mode.

The equations are those of the Modelica Standard Library's RobotR3, in joint units: with `qm = N^-1 theta_m`,
a rotor's inertia `A = N^2 J` and the motor's torque `N k i`,

    elastic:  A qmdd = N k i - tau - F(qmd),   tau = K (qm - q) + D (qmd - qd),   M qdd + h = tau
    rigid:    qm = q,   M qdd + h = N k i - A qdd - F(qd)
    current:  dv/dt = 25 (w / damping) (i - i_ref),   L di/dt = -5 v - R i - k theta_m_d
    control:  u = N qd_ref + kp (N q_ref - theta_m) - theta_m_d,   dx/dt = u / Ts,   i_ref = ks (x + u)

In the modes +1 and -1 friction is Coulomb and viscous, `F = mode Fc + Fv v`.  In mode 0 the shaft sticks, and
F is the constraint torque.  A mode ends when v passes zero, or when F exceeds the static friction.
"""

from collections import namedtuple

import numpy as np
from scipy.integrate import DOP853
from scipy.optimize import brentq

R = 250.0  # Ohm: resistance of the armature, whose inductance L is R / (2 damping w)


Motor = namedtuple("Motor", "k w damping")
"""Motors (n,): torque constant in [N m/A], bandwidth in [rad/s] and damping of the current loop."""

Control = namedtuple("Control", "kp ks Ts")
"""Gains of the controllers of all axes, in [1/s], [A s/rad] and [s]."""

Arm = namedtuple("Arm", "mass_matrix bias")
"""Mass matrix M(q) (n, n), and h(q, qd) (n,), the Coriolis and gravity torque."""

State = namedtuple("State", "q qd qm qmd i v x")
"""Parts (..., n) of the integrated vector; i, v of the current loop, x of the speed controller."""

ModeChange = namedtuple("ModeChange", "t axis before after")
"""Change of a friction mode at time t.

Axes count from 1.  Modes are +1 and -1 for sliding in the joint's positive and negative direction, and 0
for sticking.
"""


class Simulation:
    """Simulation of one arm with its drives along one reference.

    Args:
        arm: functions for M and h.
        drives: drives of the arm, without coupling and without a Stribeck curve.
        motor: motors of all axes.
        control: gains of the controllers.
        reference: function of t that returns q_ref and qd_ref (n,).
        kinks: times at which the reference is not smooth; the last one is its end.
    """

    def __init__(self, arm, drives, motor, control, reference, kinks) -> None:
        self.arm, self.motor, self.control, self.reference = arm, motor, control, reference
        self.kinks = kinks
        self.N = np.asarray(drives.ratio, dtype=float)
        self.A = self.N**2 * drives.rotor_inertia
        self.elastic = np.isfinite(drives.stiffness)
        self.K = np.where(self.elastic, drives.stiffness, 0.0)
        self.D = np.where(self.elastic, drives.damping, 0.0)
        self.A_rigid = np.diag(np.where(self.elastic, 0.0, self.A))
        self.coulomb, self.static, self.viscous = drives.coulomb, drives.static, drives.viscous
        self.L = R / (2 * motor.damping * motor.w)

    def start(self, q) -> np.ndarray:
        """Return the state at rest in equilibrium without friction, with steady current loops."""
        hold = self.arm.bias(q, np.zeros_like(q))  # torque against gravity
        qm = q + np.divide(hold, self.K, out=np.zeros_like(q), where=self.elastic)
        i = hold / (self.N * self.motor.k)
        u = self.speed_error(0.0, qm, np.zeros_like(q))
        return np.concatenate([q, 0 * q, qm, 0 * q, i, -50 * i, i / self.control.ks - u])

    def parts(self, y) -> State:
        """Split the state (..., 7 n) into named parts; with a rigid gear the motor follows the joint."""
        q, qd, qm, qmd, *rest = np.moveaxis(y.reshape(*y.shape[:-1], 7, -1), -2, 0)
        return State(q, qd, np.where(self.elastic, qm, q), np.where(self.elastic, qmd, qd), *rest)

    def speed_error(self, t, qm, qmd):
        q_ref, qd_ref = self.reference(t)
        return self.N * (qd_ref + self.control.kp * (q_ref - qm) - qmd)

    def accelerations(self, s, modes):
        """Return qdd, qmdd and the friction torques (n,).

        Friction acts at the joint of a rigid gear and at the rotor of an elastic one.
        """
        drive = self.N * self.motor.k * s.i
        spring = self.K * (s.qm - s.q) + self.D * (s.qmd - s.qd)
        slides = modes != 0
        F = modes * self.coulomb + self.viscous * s.qmd
        load = np.where(self.elastic, spring, drive - F * slides) - self.arm.bias(s.q, s.qd)
        M = self.arm.mass_matrix(s.q) + self.A_rigid
        free = slides | self.elastic
        if free.all():
            qdd = np.linalg.solve(M, load)
        else:
            qdd = np.zeros_like(s.q)
            qdd[free] = np.linalg.solve(M[np.ix_(free, free)], load[free])
        holding = np.where(self.elastic, drive - spring, load - M @ qdd)
        F = np.where(slides, F, holding)
        qmdd = np.where(self.elastic, (drive - spring - F) / self.A, qdd)
        return qdd, qmdd, F

    def rates(self, t, y, modes):
        """Return dy/dt (7 n,) for constant friction modes."""
        s = self.parts(y)
        qdd, qmdd, _ = self.accelerations(s, modes)
        u = self.speed_error(t, s.qm, s.qmd)
        k, w, damping = self.motor
        vd = 25 * w / damping * (s.i - self.control.ks * (s.x + u))
        i_rate = (-5 * s.v - R * s.i - k * self.N * s.qmd) / self.L
        return np.concatenate([s.qd, qdd, s.qmd, qmdd, i_rate, vd, u / self.control.Ts])

    def margins(self, y, modes):
        """Return the distance (n,) of every mode from its end, as a speed or a torque; negative beyond it."""
        s = self.parts(y)
        _, _, F = self.accelerations(s, modes)
        return np.where(modes != 0, modes * s.qmd, self.static - np.abs(F))

    def run(self, q_start, times, rtol=1e-8, atol=1e-10) -> tuple[State, list[ModeChange]]:
        """Integrate from rest at q_start (n,); return the states at `times` (N,) and the changes of modes."""
        times = np.asarray(times, dtype=float)
        t, y = 0.0, self.start(np.asarray(q_start, dtype=float))
        modes = np.zeros(len(self.N), dtype=int)
        states, changes = np.full((len(times), len(y)), np.nan), []
        states[times == 0.0] = y
        for end in self.kinks:
            while t < end:
                solver = DOP853(lambda t, y, m=modes: self.rates(t, y, m), t, y, end, rtol=rtol, atol=atol)
                ended = None
                while ended is None and solver.status == "running":
                    solver.step()
                    dense = solver.dense_output()
                    ended, t = self.first_end(dense, modes)
                    now = (times > dense.t_old) & (times <= t)
                    states[now] = dense(times[now]).T
                y = dense(t)
                if ended is not None:
                    y, after = self.changed(y, modes, ended)
                    changes += [
                        ModeChange(t, j + 1, modes[j], after[j]) for j in np.flatnonzero(after != modes)
                    ]
                    modes = after
        return self.parts(states), changes

    def first_end(self, dense, modes):
        """Return the axis whose mode ends first in a step, and the time of that end.

        If no mode ends, return `None` and the end of the step.
        """
        ends = [
            (brentq(lambda t, j=j: self.margins(dense(t), modes)[j], dense.t_old, dense.t, xtol=1e-14), j)
            for j in np.flatnonzero(self.margins(dense(dense.t), modes) < 0)
        ]
        t, axis = min(ends, default=(dense.t, None))
        return axis, t

    def changed(self, y, modes, axis):
        """Return the state and the modes after the mode of an axis has ended.

        The axis sticks if its static friction suffices.  Stuck joints interact through the mass matrix.
        Therefore all joints that could stick are first taken as stuck.  Then the joint whose torque exceeds
        its static friction most is released, until no torque exceeds it.
        """
        n, modes, y = len(modes), modes.copy(), y.copy()
        if modes[axis] == 0:
            _, _, F = self.accelerations(self.parts(y), modes)
            modes[axis] = np.sign(F[axis])
        else:
            y[3 * n + axis if self.elastic[axis] else n + axis] = 0.0
            modes[axis] = 0
        while True:
            _, _, F = self.accelerations(self.parts(y), modes)
            beyond = np.where(modes == 0, np.abs(F) - self.static, -1.0)
            worst = np.argmax(beyond)
            if beyond[worst] <= 0:
                return y, modes
            modes[worst] = np.sign(F[worst])
