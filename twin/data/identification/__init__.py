"""Identification of the parameters of links, drives and payload from recorded motion, with deviations."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
