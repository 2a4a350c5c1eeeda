"""The arm and its world: rotations, robots, kinematics, dynamics, trajectories, engine, control."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
