"""The robot as every computation sees it: tree, limits, couplings, loops; calls of its kernels."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
