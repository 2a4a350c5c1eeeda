"""What ABB's controllers speak: RAPID, EGM, a virtual controller, Robot Web Services."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
