"""From recorded motion to a model: parameters of links, drives and payload, with their deviations."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
