"""Which version of the project this is."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__: str = version("irb-twin")
except PackageNotFoundError:  # its folders were put where Python finds them, without an installation
    __version__ = "unknown"
