"""Version of the project."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__: str = version("irb-twin")
except PackageNotFoundError:  # the packages lie on Python's path without being installed
    __version__ = "unknown"
