"""Iterative learning: a correction of the reference that improves from run to run of one motion."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
