"""Tools of every room: errors, checks of arrays, compilation, processes, files, plugins."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
