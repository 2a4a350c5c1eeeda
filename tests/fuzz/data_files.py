"""Fuzz cases of data files: recordings in CSV, logs in `.npz`."""

import io
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path

import numpy as np

import twin
from tests.fuzz import raw, unusual
from tests.support.example_logs import made_log
from twin.physics.robot.evaluation import uncompiled

IN_MM = {"x": "x_mm", "y": "y [mm]", "z": "z(mm)", "t": "t[ms]", "a": "a[1]"}
DTYPES = ("f4", "f8", "i8", "c16", "?", "U5", "S5", "O", "M8[s]", "m8[s]", ">f8", "V8", "u1", "f2")
SHAPES = ((0,), (), (1,), (6,), (5, 1), (1, 6), (5, 7), (2, 3, 4), (100_000,))


def csv_case(rng: np.random.Generator) -> dict[str, bytes]:
    """Make `path.csv`: a damaged recording of the tool or of joints in the style of various programs."""
    table = _joints(rng) if rng.random() < 0.3 else _tool(rng)
    separator = unusual.one_of(rng, (",", ",", ";", "\t"))
    if separator != "," and rng.random() < 0.5:
        table[1:] = [[cell.replace(".", ",") for cell in row] for row in table[1:]]
    for _ in range(rng.geometric(0.6)):
        _change_table(rng, table)
    encoding = unusual.one_of(rng, ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16"))
    changed = "\n".join(separator.join(row) for row in table).encode(encoding, "replace")
    while rng.random() < 0.2:
        changed = raw.damaged(rng, changed)
    return {"path.csv": changed}


def _tool(rng: np.random.Generator) -> list[list[str]]:
    """Make a header and rows of a tool motion."""
    N = int(rng.integers(1, 8))
    t = np.cumsum(rng.uniform(0.01, 0.1, N))
    position = np.cumsum(rng.normal(size=(N, 3)) * 0.01, axis=0)
    names = ["t", "x", "y", "z", "a", "b", "c", "d"]
    orientation = np.cumsum(rng.normal(size=(N, 4)) * 0.05, axis=0) + np.array([1.0, 0, 0, 0])
    orientation /= np.linalg.norm(orientation, axis=1)[:, None]
    if rng.random() < 0.2:
        names[4:], orientation = ["rx", "ry", "rz"], orientation[:, 1:]
    values = np.column_stack([t, position, orientation])
    if rng.random() < 0.3:
        values[:, :4] *= 1000.0
        names = [IN_MM.get(name, name) for name in names]
    return [names, *([repr(value) for value in row] for row in values.tolist())]


def _joints(rng: np.random.Generator) -> list[list[str]]:
    """Make a header and rows of a joint motion."""
    N, n = int(rng.integers(1, 8)), int(rng.integers(1, 8))
    degrees = unusual.one_of(rng, ("", "_deg", "[deg]", " (°)"))
    q = np.cumsum(rng.normal(size=(N, n)) * 0.1, axis=0) * (180.0 / np.pi if degrees else 1.0)
    values = np.column_stack([np.cumsum(rng.uniform(0.01, 0.1, N)), q]).tolist()
    names = ["t", *(f"q{k + 1}{degrees}" for k in range(n))]
    return [names, *([repr(value) for value in row] for row in values)]


def _change_table(rng: np.random.Generator, table: list[list[str]]) -> None:
    """Change a cell, a row, a column or the header."""
    row = unusual.one_of(rng, table)
    at = int(rng.integers(len(row) + 1))
    match rng.integers(9):
        case 0 | 1 | 2:
            row[at : at + 1] = [unusual.number(rng, row[at] if at < len(row) else "1")]
        case 3:
            row[at : at + 1] = [unusual.text(rng)]
        case 4:
            table.insert(int(rng.integers(len(table) + 1)), list(row))
        case 5:
            order = rng.permutation(len(table[0]))
            table[:] = [[row[k] for k in order] if len(row) == len(order) else row for row in table]
        case 6:
            table[:] = [[*row, unusual.text(rng)] for row in table]
        case 7:
            cells = ([], ["1" * 200_000], ['"'], ['"1\n"'], ["1;2"], ["1,5"], ["1.5"], [" 1"], ["", ""])
            row[at : at + 1] = unusual.one_of(rng, cells)
        case _:
            forms = ("{0}", " {0} ", '"{0}"', "{0}[deg]", "{0}_mm", "{1}")
            table[0] = [unusual.one_of(rng, forms).format(name, name.upper()) for name in table[0]]


def npz_case(rng: np.random.Generator) -> dict[str, bytes]:
    """Make `run.npz`: a damaged log."""
    arrays = dict(_log(int(rng.integers(3))))
    for _ in range(rng.geometric(0.6)):
        _change_arrays(rng, arrays)
    file = io.BytesIO()
    np.savez(file, **arrays)
    changed = file.getvalue()
    if rng.random() < 0.1:
        name = unusual.one_of(rng, list(arrays))
        changed = _with_false_length(changed, name, int(10 ** rng.uniform(1, 18)))
    while rng.random() < 0.1:
        changed = raw.damaged(rng, changed)
    return {"run.npz": changed}


def _change_arrays(rng: np.random.Generator, arrays: dict[str, np.ndarray]) -> None:
    """Change the values, shape, data type or name of one array."""
    name = unusual.one_of(rng, list(arrays))
    array = np.asarray(arrays.pop(name))
    match rng.integers(9):
        case 0:
            return
        case 1:
            arrays[unusual.one_of(rng, ("q", "own_", "own_x", "payload_mass", "dh_d", "robot", "x"))] = array
        case 2:
            arrays[name] = _of_kind(array, unusual.one_of(rng, DTYPES))
        case 3:
            arrays[name] = array[: rng.integers(len(array) + 1)] if array.ndim else array[None]
        case 4:
            arrays[name] = array.T[..., None][..., 0].copy() if rng.random() < 0.5 else array[None]
        case 5:
            arrays[name] = np.resize(array, unusual.one_of(rng, SHAPES))
        case 6 | 7:
            arrays[name] = array.copy()
            if array.dtype.kind == "f" and array.size:
                odd_values = [np.nan, np.inf, -1.0, 0.0, 1e308, 1e-320, float(rng.normal())]
                arrays[name].reshape(-1)[rng.integers(array.size)] = unusual.one_of(rng, odd_values)
        case _:
            values = (unusual.text(rng), -1, 0, 2.5, np.nan, 2**62, True, "irb1400")
            arrays[name] = np.array(unusual.one_of(rng, values))


def _of_kind(array: np.ndarray, kind: str) -> np.ndarray:
    """Convert an array to a data type, or return zeros of that type and shape if that is impossible."""
    try:
        with np.errstate(all="ignore"):
            return array.astype(kind)
    except (TypeError, ValueError):
        return np.zeros(array.shape, kind)


def _with_false_length(archive: bytes, name: str, length: int) -> bytes:
    """Return the archive with the header of one array that claims `length` numbers."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({length},), }}".ljust(117) + "\n"
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out := io.BytesIO(), "w") as new:
        for entry in old.namelist():
            chosen = entry == f"{name}.npy"
            new.writestr(entry, b"\x93NUMPY\x01\x00\x76\x00" + header.encode() if chosen else old.read(entry))
    return out.getvalue()


@lru_cache
def _log(which: int) -> dict[str, np.ndarray]:
    """Return the arrays of a log of an arm (0), an arm with a payload (1) or a robot of a DH table (2)."""
    robot = twin.load("irb140")
    if which == 1:
        robot = robot.with_payload(twin.Payload(2.0, (0.0, 0.1, 0.05)))
    if which == 2:
        robot = twin.dh_robot("mine", twin.load("two_link").dh)
    q, tau = np.random.default_rng(which).uniform(-0.2, 0.2, (2, 5, robot.n))
    log = made_log(uncompiled(robot), q, 0.9 * q, tau=tau, arrays={"bandwidth": np.array(20.0)})
    with tempfile.TemporaryDirectory() as folder:
        log.save(path := Path(folder) / "run.npz")
        with np.load(path) as archive:
            return dict(archive)
