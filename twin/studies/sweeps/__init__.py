"""Sweeps: sampling designs, parallel runs of an experiment with varied quantities, and statistics."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
