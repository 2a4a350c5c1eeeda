"""Motions of joints and tools: time laws, paths, recordings, samples, and limits."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
