"""Simulation of a full disk."""

import resource
import sys
from contextlib import contextmanager


@contextmanager
def disk_full_after(size):
    """Limit every file to `size` bytes, so that writing fails midway as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    writes = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # Python would later fail on truncated byte code of a module
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
