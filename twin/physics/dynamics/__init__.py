"""Equations of motion in joint space, in operational space and on surfaces; Norrlöf's main axes and joint."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
