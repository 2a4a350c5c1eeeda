"""Instructions of raw bytes and files."""

from __future__ import annotations

from typing import Any

from twin.abb.rapid import strings
from twin.abb.rapid.arguments import Arguments, expression_of
from twin.abb.rapid.expressions import Part
from twin.abb.rapid.moves import Instruction
from twin.abb.rapid.recorder import Recorder
from twin.abb.rapid.values import NUM, STRING, text_of
from twin.base.errors import RapidError

MOST_RAW_BYTES = 1024
"""Largest number of raw bytes."""


def file_key(given: Arguments) -> int:
    """Return the identity of the data object of a file."""
    cell = given.cell(0)
    return hash((id(cell.items), cell.key)) if isinstance(cell, Part) else id(cell)


def open_file(recorder: Recorder, given: Arguments) -> int:
    """Return the identity of an open file.

    Raises:
        RapidError: it is not open.
    """
    key = file_key(given)
    if not recorder.files.is_open(key):
        raise RapidError(f"{given.name}: {given.name_of(0)} is not open", number="err_fileacc")
    return key


def _open(recorder: Recorder, given: Arguments) -> None:
    name = given.value(0, STRING)
    if "file" in given:
        name = f"{name}/{given.value('file', STRING)}"
    cell = given.required[1:]
    inner = Arguments(given.interpreter, given.name, cell)
    mode = "write" if "write" in given else "append" if "append" in given else "read"
    mode = "binary" if mode == "read" and "bin" in given else mode
    if not recorder.files.open(file_key(inner), name, mode):
        raise RapidError(f"Open: the folder of --home has no file {name}", number="err_fileopen")
    if mode in ("read", "binary") and not recorder.files.has_home:
        recorder.assume(given.interpreter.place, f"Open: {name} is empty (--home DIR has it)")


def _close(recorder: Recorder, given: Arguments) -> None:
    recorder.files.close(file_key(given))


def _rewind(recorder: Recorder, given: Arguments) -> None:
    recorder.files.rewind(file_key(given))


def _write(recorder: Recorder, given: Arguments) -> None:
    key = open_file(recorder, given)
    rest = Arguments(given.interpreter, given.name, given.required[1:])
    rest.named = {name: one for name, one in given.named.items() if name != "nonewline"}
    text = rest.texts()
    recorder.note(given.interpreter.place, f"{given.name}: {text}")
    recorder.files.write(key, text + "\n" * ("nonewline" not in given))


def _write_bytes(recorder: Recorder, given: Arguments) -> None:
    key = open_file(recorder, given)
    value = given.interpreter.evaluate(given.expression(1))
    if isinstance(value, list):  # bytes as numbers (WriteBin)
        value = bytes(int(one) & 255 for one in value[: int(given.value(2, NUM))])
    if isinstance(value, bytes):
        value = value[: int(given.optional("noofbytes", NUM, float(len(value))))].decode("latin-1")
    recorder.files.write(key, value if isinstance(value, str) else text_of(value))


def _read_bytes(recorder: Recorder, given: Arguments) -> None:
    text = recorder.files.characters(open_file(recorder, given), MOST_RAW_BYTES)
    given.cell(1).value = text.encode("latin-1")
    if not text:
        raise RapidError(f"{given.name}: the file is at its end", number="err_ranybin_eof")


def _write_data(recorder: Recorder, given: Arguments) -> None:
    value = given.interpreter.evaluate(given.expression(1))
    recorder.files.write(open_file(recorder, given), text_of(value, 9) + "\n")


def _read_data(recorder: Recorder, given: Arguments) -> None:
    line, cell = recorder.files.line(open_file(recorder, given)), given.cell(1)
    if line is None:
        raise RapidError(f"{given.name}: the file is at its end", number="err_ranybin_eof")
    given.write(1, given.interpreter.evaluate(expression_of(line), cell.type, cell.dimensions))


def _remove(recorder: Recorder, given: Arguments) -> None:
    recorder.note(given.interpreter.place, f"{given.name} (logged)")


# ------------------------------------------------------------------------------------------ raw bytes


def _bytes(given: Arguments, which: int) -> bytes:
    return given.opaque(which, bytes, b"")


def _clear(recorder: Recorder, given: Arguments) -> None:
    first = int(given.optional("fromindex", NUM, 1.0))
    given.cell(0).value = _bytes(given, 0)[: first - 1]


def _form(given: Arguments) -> dict[str, Any]:
    form: dict[str, Any] = {name: True for name in ("hex1", "float4", "ascii") if name in given}
    return {**form, "intx": given.value("intx", NUM)} if "intx" in given else form


def _start(given: Arguments, which: int, most: int) -> int:
    start = int(given.value(which, NUM))
    if not 1 <= start <= most:
        raise RapidError(f"{given.name}: index {start}, expected 1 to {most}", number="err_outofbnd")
    return start - 1


def _pack(recorder: Recorder, given: Arguments) -> None:
    value = given.interpreter.evaluate(given.expression(0))
    raw = _bytes(given, 1)
    start = _start(given, 2, MOST_RAW_BYTES)
    new = strings.packed(value, _form(given))
    new = new[::-1] if "network" in given and not isinstance(value, str) else new
    raw = raw.ljust(start, b"\0")
    given.cell(1).value = raw[:start] + new + raw[start + len(new) :]


def _unpack(recorder: Recorder, given: Arguments) -> None:
    raw = _bytes(given, 0)
    form = _form(given)
    part = raw[_start(given, 1, max(len(raw), 1)) :]
    size = abs(int(form.get("intx", 4)))
    if "network" in given and not {"ascii", "hex1"} & set(form):
        part = part[:size][::-1]
    cell = given.cell(2)
    count = int(given.optional("ascii", NUM, 80.0)) if "ascii" in given and given.named["ascii"].value else 80
    value = strings.unpacked(part, form, count)
    cell.value = float(part[0]) if cell.type == NUM and isinstance(value, str) and part else value


def _copy(recorder: Recorder, given: Arguments) -> None:
    source, first, to = _bytes(given, 0), int(given.value(1, NUM)) - 1, int(given.value(3, NUM)) - 1
    count = int(given.optional("noofbytes", NUM, float(len(source) - first)))
    target, part = _bytes(given, 2).ljust(to, b"\0"), source[first : first + count]
    given.cell(2).value = target[:to] + part + target[to + len(part) :]


INSTRUCTIONS = {
    "Open": Instruction(("Object", "IODevice"), _open),
    "Close": Instruction(("IODevice",), _close),
    "Rewind": Instruction(("IODevice",), _rewind),
    "Write": Instruction(("IODevice", "String"), _write),
    **dict.fromkeys(("WriteStrBin", "WriteRawBytes"), Instruction(("IODevice", "Data"), _write_bytes)),
    "WriteAnyBin": Instruction(("IODevice", "Data"), _write_data),
    "WriteBin": Instruction(("IODevice", "Buffer", "NChar"), _write_bytes),
    "ReadRawBytes": Instruction(("IODevice", "RawData"), _read_bytes),
    "ReadAnyBin": Instruction(("IODevice", "Data"), _read_data),
    **dict.fromkeys(
        ("MakeDir", "RemoveDir", "RemoveFile", "RenameFile", "CopyFile", "OpenDir", "CloseDir"),
        Instruction((), _remove),
    ),
    "ClearRawBytes": Instruction(("RawData",), _clear),
    "PackRawBytes": Instruction(("Value", "RawData", "StartIndex"), _pack),
    "UnpackRawBytes": Instruction(("RawData", "StartIndex", "Value"), _unpack),
    "CopyRawBytes": Instruction(("FromRawData", "FromIndex", "ToRawData", "ToIndex"), _copy),
}
"""Instructions by their names."""
