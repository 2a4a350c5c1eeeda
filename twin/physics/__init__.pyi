from . import control as control
from . import dynamics as dynamics
from . import kinematics as kinematics
from . import robot as robot
from . import rotations as rotations
from . import trajectories as trajectories
