"""Closed loops of a controller and a plant (engine or analytic model), one by one or in compiled batches."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
