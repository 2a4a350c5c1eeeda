"""Control laws in a loop with a plant, the engine or the model; rollouts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
