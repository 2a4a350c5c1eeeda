"""A disk that is full."""

import resource
import sys
from contextlib import contextmanager


@contextmanager
def disk_full_after(size):
    """No file may grow beyond so many bytes: as on a full disk, writing fails half-way."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    writes = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # Python would keep the half of a module's byte code, and stumble over it
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
