"""Guidance: joint speeds that follow the received references within the limits of the robot."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
