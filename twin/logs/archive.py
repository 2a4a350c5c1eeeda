"""Reads a NumPy archive, by custom `.npz`, that anybody may have altered.

Nothing is unpickled, and nothing is set aside for an array before it is known to be in the file: an archive
as `numpy.savez` writes it is as large as what is in it.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

KINDS = "biufcU"
"""Bits, integers, floats, complex numbers and texts; times, bytes and objects have no place in an archive."""


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Return the arrays of an archive, by name.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not such an archive, or one of its arrays is not what it says it is.
        zipfile.BadZipFile: it is damaged.
    """
    path = Path(path)
    if path.exists() and not path.is_file():  # reading a pipe or a device might never end
        raise ValueError("it is not a file")
    with path.open("rb") as file:
        if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
            raise ValueError("it holds a single array")
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if not sum(member.file_size for member in members) <= path.stat().st_size:
                raise ValueError("its arrays are larger than the file: it is compressed, or made up")
            names = [member.filename for member in members]
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"it has {twice[0]} twice")
            return {
                member.filename.removesuffix(".npy"): _array(archive.read(member), member.filename)
                for member in members
            }


def _array(content: bytes, name: str) -> np.ndarray:
    """The array in the bytes of a `.npy` file."""
    stream = io.BytesIO(content)
    version = npy.read_magic(stream)
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read_header is None:
        raise ValueError(f"{name} is of the unknown version {version}")
    shape, columns_first, dtype = read_header(stream)
    if dtype.kind not in KINDS or dtype.subdtype is not None or not dtype.isnative:
        raise ValueError(f"{name} holds {dtype}, expected numbers or text")
    size, there = dtype.itemsize, len(content) - stream.tell()
    for length in shape:
        size *= length
    if min(shape, default=0) < 0 or size != there:
        raise ValueError(f"{name} says it has the shape {shape} of {dtype}, and has {there} bytes")
    array = np.ndarray(shape, dtype, content, stream.tell(), order="F" if columns_first else "C")
    return array.copy(order="K")
