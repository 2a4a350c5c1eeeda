"""Version of the project, and of the libraries on which its figures depend."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

ENGINES = ("pybullet", "pybullet-arm64")
"""Packages that contain the module `pybullet`; the first has fewer wheels."""


def engine_package() -> str:
    """Return the package that `pyproject.toml` chooses for this Python: the one that has a wheel for it."""
    has_wheel = sys.platform == "linux" and platform.machine() == "x86_64" and sys.version_info < (3, 12)
    return ENGINES[0 if has_wheel else 1]


def _installed(*packages: str) -> str:
    """Return the version of the first of these packages that is installed, "unknown" if none is.

    The name is added if it is not that of the first package: `3.2.8 (pybullet-arm64)`.
    """
    for name in packages:
        try:
            return version(name) + f" ({name})" * (name != packages[0])
        except PackageNotFoundError:
            continue
    return "unknown"


# Unknown if the packages lie on Python's path without being installed.
__version__: str = _installed("irb-twin")


def library_versions() -> dict[str, str]:
    """Return the versions of numpy, numba and PyBullet."""
    return {"numpy": _installed("numpy"), "numba": _installed("numba"), "pybullet": _installed(*ENGINES)}
