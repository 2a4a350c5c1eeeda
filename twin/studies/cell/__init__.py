"""Cells: what stands around an arm, and how near the arm comes to it and to itself."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
