"""Import of the packages beside this one, even if a user's folder of the same name precedes them."""

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def import_urdf() -> None:
    """Import the package `urdf` beside this one, even if another `urdf` comes first on Python's path.

    Raises:
        ImportError: another module of that name has been imported already.
    """
    if "urdf" not in sys.modules:
        folder = PROJECT / "urdf"
        spec = spec_from_file_location(
            "urdf", folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        sys.modules["urdf"] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules["urdf"])
    if message := hidden("urdf"):
        raise ImportError(f"{message}; or import twin before it")


def hidden(name: str) -> str:
    """Return a message that names what hides a package beside this one; empty if nothing does."""
    spec = find_spec(name)
    folders = [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]
    if any(folder.resolve() == PROJECT / name for folder in folders):
        return ""
    what = str(folders[0]) if folders else spec.origin if spec is not None else None
    return f"the package {name} of irb-twin is hidden by {what}: rename that, or remove it from Python's path"
