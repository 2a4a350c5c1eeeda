"""Scenario of a user, see `MyScenario`."""

import twin
from scenarios import TrackingScenario, option


class MyScenario(TrackingScenario):
    """Nod with the arm: move axis 5 down and up again.

    Replace `motion` by yours, and run it with any controllers:

        irb-twin run ./my_scenario.py --controller pd computed_torque --picture my_scenario.png
    """

    angle: float = option(0.5, "travel of axis 5, in rad")
    duration: float = option(1.0, "duration of the motion down, and of the motion up, in s")

    def __post_init__(self):
        """Raise an error for invalid options."""
        if not self.duration > 0:
            raise ValueError(f"expected a duration above 0 s, got {self.duration}")

    def motion(self, robot):
        """Return the desired motion of the joints, a function of time."""
        up, down = [0.0] * robot.n, [0.0] * robot.n
        down[4] = self.angle
        return twin.sequence(twin.quintic(up, down, self.duration), twin.quintic(down, up, self.duration))
