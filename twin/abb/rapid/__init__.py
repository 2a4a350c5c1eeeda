"""Programs in RAPID, ABB's language: read them, run them, plan their motion, judge it, and write paths."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
