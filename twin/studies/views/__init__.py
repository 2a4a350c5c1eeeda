"""Views of logs: comparison tables, curves, films and their playback."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
