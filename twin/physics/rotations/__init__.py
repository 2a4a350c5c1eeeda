"""Rotations and what stands for them: matrices, quaternions, Euler angles, linear maps; no robot."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
