"""Solids bounded by STL meshes, in plain Python, whose results are the same on every machine.

Sums are exact (`math.fsum`), and products are those of IEEE doubles.  `twin.robot.link_shapes` does
the same with NumPy, for other formats, and says more about a mesh that is broken.
"""

import struct
from collections import Counter
from functools import lru_cache
from math import fsum
from pathlib import Path

from urdf.schema import UNITS, FactsError

Point = tuple[float, float, float]


def triangles(path: Path) -> list[tuple[Point, Point, Point]]:
    """Return the triangles of a binary or ASCII STL file, in its unit of length.

    Raises:
        FactsError: the file is missing or is no STL file.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FactsError(f"cannot read the mesh {path}: {error.strerror or error}") from error
    numbers: list[float] = []
    if len(content) >= 84 and len(content) == 84 + 50 * struct.unpack_from("<I", content, 80)[0]:
        for row in struct.iter_unpack("<12fH", content[84:]):
            numbers += row[3:12]
    else:
        words = content.decode("ascii", "replace").split()
        try:
            numbers = [
                float(x) for k, word in enumerate(words) if word == "vertex" for x in words[k + 1 : k + 4]
            ]
        except ValueError:
            numbers = []
    if not numbers or len(numbers) % 9:
        raise FactsError(f"the mesh {path} is no STL file with triangles")
    points = list(zip(*[iter(numbers)] * 3, strict=True))
    return list(zip(*[iter(points)] * 3, strict=True))


@lru_cache(maxsize=64)
def solid(path: Path, unit: str) -> tuple[float, Point, tuple[float, ...]]:
    """Return volume, centre of mass, and inertia about it for each kg (xx, yy, zz, xy, xz, yz) of a mesh.

    Raises:
        FactsError: the mesh is not closed, or has no volume.
    """
    faces, scale = triangles(path), UNITS[unit]
    edges = Counter((a, b) for face in faces for a, b in zip(face, (*face[1:], face[0]), strict=True))
    single = sum(abs(count - edges[b, a]) for (a, b), count in edges.items()) // 2
    if single:
        raise FactsError(f"the mesh {path} is not closed: {single} edges belong to one triangle only")
    x0, y0, z0 = faces[0][0]  # a near point loses no digits
    volumes: list[float] = []
    first: list[list[float]] = [[], [], []]
    second: dict[tuple[int, int], list[float]] = {(i, j): [] for i in range(3) for j in range(i, 3)}
    for face in faces:
        a, b, c = ((x - x0, y - y0, z - z0) for x, y, z in face)
        v = (
            a[0] * (b[1] * c[2] - b[2] * c[1])
            + a[1] * (b[2] * c[0] - b[0] * c[2])
            + a[2] * (b[0] * c[1] - b[1] * c[0])
        ) / 6.0
        total = [a[k] + b[k] + c[k] for k in range(3)]
        volumes.append(v)
        for k in range(3):
            first[k].append(v * total[k] / 4.0)
        for (i, j), terms in second.items():
            terms.append(v * (a[i] * a[j] + b[i] * b[j] + c[i] * c[j] + total[i] * total[j]) / 20.0)
    volume = fsum(volumes)  # of a mesh that is inside out all integrals are negative, and their ratios right
    if not abs(volume) > 0.0:
        raise FactsError(f"the mesh {path} encloses no volume")
    com = [fsum(terms) / volume for terms in first]
    square = {place: fsum(terms) / volume - com[place[0]] * com[place[1]] for place, terms in second.items()}
    xx, yy, zz = (square[k, k] * scale * scale for k in range(3))
    off = tuple(-square[place] * scale * scale for place in ((0, 1), (0, 2), (1, 2)))
    where = (scale * (com[0] + x0), scale * (com[1] + y0), scale * (com[2] + z0))
    return abs(volume) * scale**3, where, (yy + zz, xx + zz, xx + yy, *off)
