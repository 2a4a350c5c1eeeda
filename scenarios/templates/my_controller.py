"""My controller: feedback of the tracking error, with gravity compensation.

Replace the formula in `__call__` by your control law, and compare it with other controllers:

    irb-twin run joint_tracking --controller ./my_controller.py:MyController pd computed_torque

To run a controller thousands of times (`twin.run_rollouts`), write its law as a function that can be
compiled, in a `twin.ControlLaw`; `controllers/pid.py` of irb-twin is an example.
"""

import numpy as np

import twin


class MyController:
    """tau = Kp (q_ref - q) + Kd (qd_ref - qd) + g(q)."""

    def __init__(self, robot, *, bandwidth=20.0, period=1e-3, damping=1.0):
        """Choose the gains.

        Args:
            robot: robot model of the controller; the controlled arm may differ from it.
            bandwidth: bandwidth omega of the closed loop, in [rad/s]; `--bandwidth` on the command line.
            period: time between two calls, in [s]; a controller with an integral needs it.
            damping: damping ratio of the closed loop; every such argument is a setting, `--set damping=0.7`.
        """
        inertia = np.diag(twin.mass_matrix(robot, np.zeros(robot.n)))  # (n,) at the zero pose, in [kg m^2]
        self.robot = robot
        self.Kp = bandwidth**2 * inertia  # (n,), in [N m/rad]
        self.Kd = 2 * damping * bandwidth * inertia  # (n,), in [N m s/rad]

    def reset(self):
        """Reset the memory at the start of a run, for example an integral; this controller has no memory."""

    def __call__(self, state, reference):
        """Return the torques (n,), in [N m].

        Args:
            state: measured state: time `t` in [s], `q` (n,) in [rad], `qd` (n,) in [rad/s], `wrench` (6,) on
                the tool, base axes, in [N, N m].
            reference: desired motion: `q` (n,) in [rad], `qd` (n,) in [rad/s], `qdd` (n,) in [rad/s^2].
        """
        feedback = self.Kp * (reference.q - state.q) + self.Kd * (reference.qd - state.qd)
        return feedback + twin.gravity_torque(self.robot, state.q)
