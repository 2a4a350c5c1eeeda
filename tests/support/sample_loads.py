"""Payload without symmetry, and a tool frame that is rotated and displaced."""

import numpy as np

from twin.physics.robot.robot import Payload

TENSOR = [[0.03, 0.004, -0.002], [0.004, 0.02, 0.003], [-0.002, 0.003, 0.025]]
BODY = Payload(6.0, [0.02, -0.01, 0.08], TENSOR)
TOOL = np.array([[0, 0, 1, 0.05], [0.6, 0.8, 0, -0.03], [-0.8, 0.6, 0, 0.2], [0, 0, 0, 1]])
