"""Twin that follows the messages of a robot under the guidance of another client."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
