"""A control law of my own: feedback of the tracking error, with the arm's weight taken off.

Change `__call__` to the law that you want to try, and run it beside others:

    irb-twin run joint_tracking --controller ./my_controller.py:MyController pd computed_torque

To run a law thousands of times (`twin.run_rollouts`), write it as a function that can be compiled, in a
`twin.ControlLaw`; `controllers/pd.py` of irb-twin is an example.
"""

import numpy as np

import twin


class MyController:
    """tau = Kp (q_ref - q) + Kd (qd_ref - qd) + g(q)."""

    def __init__(self, robot, *, bandwidth=20.0, period=1e-3, damping=1.0):
        """Choose the gains.

        Args:
            robot: the model that the controller has of the arm; the arm that it controls may be another.
            bandwidth: omega of the closed loop, in [rad/s]; `--bandwidth` on the command line.
            period: time between two calls, in [s]; a law that integrates needs it.
            damping: ratio of the closed loop; any further argument is a setting, `--set damping=0.7`.
        """
        inertia = np.diag(twin.mass_matrix(robot, np.zeros(robot.n)))  # of each joint at the zero pose
        self.robot = robot
        self.Kp = bandwidth**2 * inertia  # (n,), in [N m/rad]
        self.Kd = 2 * damping * bandwidth * inertia  # (n,), in [N m s/rad]

    def reset(self):
        """Forget the past, at the start of a run; there is none here, but an integral would be."""

    def __call__(self, state, reference):
        """Torques (n,), in [N m].

        Args:
            state: what is measured: time `t` in [s], `q` (n,) in [rad], `qd` in [rad/s].
            reference: what is to be followed: `q`, `qd`, and `qdd` in [rad/s^2].
        """
        feedback = self.Kp * (reference.q - state.q) + self.Kd * (reference.qd - state.qd)
        return feedback + twin.gravity_torque(self.robot, state.q)
