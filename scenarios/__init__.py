"""Scenarios: what an arm does, and what must hold.

A user's scenario needs no more than the names of this package; its modules are loaded when a name is used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
