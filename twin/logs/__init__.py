"""What happened in a run: its record, the record's file, and what is made of it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
