"""Motions of joints and tools: time laws, paths, recordings, samples, and limits."""

from typing import Any

import lazy_loader

from twin.base.wings import from_above

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Return a public name; those of motions along recordings have moved to `twin.logs`."""
    if name in ("recorded_motion", "through_recording"):
        return from_above(f"twin.data.logs.recordings.motions.{name}")
    return _public(name)
