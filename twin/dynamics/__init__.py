"""The equation of motion in joints, in the tool and on surfaces; Norrlöf's main axes and elastic joint."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
