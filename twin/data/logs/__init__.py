"""Logs of runs: the record of a closed loop, its file formats, and views of it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
