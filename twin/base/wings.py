"""Names of rooms: public ones need no wing, as `twin.kinematics`; a function above is called by its name."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

WINGS = {
    "base": ("errors", "plugins"),
    "physics": ("control", "dynamics", "engine", "kinematics", "robot", "rotations", "trajectories"),
    "data": ("identification", "logs"),
    "studies": ("cell", "learning", "sweeps", "views"),
    "abb": ("egm", "rapid"),
}
"""Wings, and their rooms with public names."""

_WING_OF = {room: wing for wing, rooms in WINGS.items() for room in rooms}


class PublicRooms(MetaPathFinder, Loader):
    """Finder of `twin.ROOM` and its modules: it returns the module of the wing, not a copy."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a specification whose origin is the full name, or `None` for other modules."""
        package, _, rest = fullname.partition(".")
        wing = _WING_OF.get(rest.partition(".")[0]) if package == "twin" else None
        return None if wing is None else ModuleSpec(fullname, self, origin=f"twin.{wing}.{rest}")

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module under its full name."""
        assert spec.origin is not None
        module = import_module(spec.origin)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Return the specification of the full name to the module, which Python has replaced."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def find_public_rooms() -> None:
    """Let Python import the rooms by their public names, as in `from twin.kinematics import velocity`."""
    sys.meta_path.insert(0, PublicRooms())


def from_above(name: str) -> Any:
    """Return a function of a room above by its full name, for the method that hands its object to it.

    `robot.plot()` is drawn by a function of the views, which know robots; a robot does not know views.  An
    import would be a circle.
    """
    module, _, function = name.rpartition(".")
    return getattr(import_module(module), function)
