"""Strings, raw bytes and files: predefined functions of text, and instructions of bytes and files."""

from __future__ import annotations

import math
import struct
from typing import Any

from twin.abb.rapid.arguments import Arguments, expression_of
from twin.abb.rapid.expressions import Part
from twin.abb.rapid.moves import Instruction
from twin.abb.rapid.recorder import Recorder
from twin.abb.rapid.values import NUM, STRING, text_of
from twin.base.errors import RapidError

BASES = {"hex": 16, "okt": 8, "bin": 2, "char": 0}


def num_to_str(value: float, decimals: float, exp: bool = False) -> str:
    """Return a number with so many decimals."""
    return f"{value:.{int(decimals)}{'E' if exp else 'f'}}"


def str_part(text: str, first: float, length: float) -> str:
    """Return a part of a text; the first character is 1."""
    begin, count = int(first), int(length)
    if not (1 <= begin <= len(text) + 1 and count >= 0 and begin + count <= len(text) + 1):
        raise ValueError(f"expected a part of {len(text)} characters")
    return text[begin - 1 : begin - 1 + count]


def str_find(text: str, first: float, wanted: str, notinset: bool = False) -> float:
    """Return the place of the first character of a set, or not of it; behind the end if there is none."""
    for i in range(int(first) - 1, len(text)):
        if (text[i] in wanted) != notinset:
            return float(i + 1)
    return float(len(text) + 1)


def str_match(text: str, first: float, pattern: str) -> float:
    """Return the place of a pattern, behind the end if there is none."""
    found = text.find(pattern, int(first) - 1)
    return float(found + 1 if found >= 0 else len(text) + 1)


def str_memb(text: str, place: float, wanted: str) -> bool:
    """Return whether a character is in a set."""
    return str_part(text, place, 1.0) in wanted


def str_map(text: str, before: str, after: str) -> str:
    """Return a text whose characters are replaced by those in the same places of another string."""
    return text.translate({ord(one): other for one, other in zip(before, after, strict=False)})


def str_order(first: str, second: str, order: str) -> bool:
    """Return whether the first text comes before the second, or equals it, in an order of characters."""

    def places(text: str) -> list[int]:
        return [order.find(one) if one in order else len(order) + ord(one) for one in text]

    return places(first) <= places(second)


def str_dig_cmp(first: str, relation: float, second: str) -> bool:
    """Return the comparison of two texts of digits; LT is 1, then LTEQ, EQ, NOTEQ, GTEQ, GT."""
    a, b = int(first), int(second)
    return {1: a < b, 2: a <= b, 3: a == b, 4: a != b, 5: a >= b, 6: a > b}[int(relation)]


def str_dig_calc(first: str, operation: float, second: str) -> str:
    """Return the result of two texts of digits; OpAdd is 1, then OpSub, OpMult, OpDiv, OpMod."""
    a, b = int(first), int(second)
    result = {1: a + b, 2: a - b, 3: a * b, 4: a // b if b else -1, 5: a % b if b else -1}[int(operation)]
    if result < 0:
        raise ValueError("the result is negative, or divided by 0")
    return str(result)


def str_format(text: str, *, arg1: str = "", arg2: str = "", arg3: str = "", arg4: str = "") -> str:
    """Return a text in which {1} to {4} are replaced by the arguments."""
    for k, one in enumerate((arg1, arg2, arg3, arg4), 1):
        text = text.replace(f"{{{k}}}", one)
    return text


def byte_to_str(value: float, **base: bool) -> str:
    """Return a byte in the base of a switch, decimal without one."""
    byte = int(value)
    if not 0 <= byte <= 255:
        raise ValueError("expected a byte, 0 to 255")
    if "char" in base:
        return chr(byte)
    form = next(({"hex": "02X", "okt": "03o", "bin": "08b"}[one] for one in base), "d")
    return f"{byte:{form}}"


def str_to_byte(text: str, **base: bool) -> float:
    """Return the byte of a text in the base of a switch, decimal without one."""
    if "char" in base:
        return float(ord(text[:1] or "\0"))
    return float(int(text, next((BASES[one] for one in base), 10)))


def bits(operation: str, width: int = 8) -> Any:
    """Return the function of an operation on bits of bytes, or of longer whole numbers."""
    most = 2**width - 1

    def compute(*values: float) -> float:
        a, *rest = (int(value) for value in values)
        b = rest[0] if rest else 0
        if not (0 <= a <= most and 0 <= b <= most):
            raise ValueError(f"expected whole numbers from 0 to {most}")
        if operation == "check":  # the bits of RAPID count from 1
            return bool(a >> (b - 1) & 1)
        shifted = {"left": a << b, "right": a >> b} if b < 64 else {}
        found = {"and": a & b, "or": a | b, "xor": a ^ b, "neg": ~a, **shifted}[operation]
        return float(found & most)

    return compute


def packed(value: Any, form: dict[str, Any]) -> bytes:
    """Return the bytes of a value in the form of PackRawBytes: a float, a whole number, or text.

    Args:
        value: number or text.
        form: switches Float4, ASCII, Hex1, and the number IntX (1, 2, 4 or 8 bytes).
    """
    if isinstance(value, str):
        return bytes.fromhex(value) if "hex1" in form else value.encode("latin-1")
    if "ascii" in form:
        return bytes([int(value) & 255])
    if "intx" in form:
        count = abs(int(form["intx"]))
        return (int(value) & (2 ** (8 * count) - 1)).to_bytes(count, "little")
    return bytes([int(value) & 255]) if "hex1" in form else struct.pack("<f", value)


def unpacked(data: bytes, form: dict[str, Any], count: int) -> Any:
    """Return the value of bytes in the form of UnpackRawBytes; `count` characters of text."""
    if "ascii" in form:
        return data[:count].decode("latin-1")
    if "hex1" in form:
        return data[:1].hex().upper()
    if "intx" in form:
        return float(int.from_bytes(data[: abs(int(form["intx"]))], "little", signed=form["intx"] < 0))
    return float(struct.unpack("<f", data[:4].ljust(4, b"\0"))[0])


def half_away(value: float) -> float:
    """Return the nearest whole number; halves are rounded away from zero."""
    return math.copysign(math.floor(abs(value) + 0.5), value)


def cut(round_: Any) -> Any:
    """Return a function that rounds to so many decimals."""

    def compute(value: float, dec: float = 0.0) -> float:
        scale = 10.0**dec
        return round_(value * scale) / scale

    return compute


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
    new = packed(value, _form(given))
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
    value = unpacked(part, form, count)
    cell.value = float(part[0]) if cell.type == NUM and isinstance(value, str) and part else value


def _copy(recorder: Recorder, given: Arguments) -> None:
    source, first, to = _bytes(given, 0), int(given.value(1, NUM)) - 1, int(given.value(3, NUM)) - 1
    count = int(given.optional("noofbytes", NUM, float(len(source) - first)))
    target, part = _bytes(given, 2).ljust(to, b"\0"), source[first : first + count]
    given.cell(2).value = target[:to] + part + target[to + len(part) :]


INSTRUCTIONS = {
    "Open": Instruction(("Object", "IODevice"), _open),
    "Close": Instruction(("IODevice",), lambda recorder, given: recorder.files.close(file_key(given))),
    "Rewind": Instruction(("IODevice",), lambda recorder, given: recorder.files.rewind(file_key(given))),
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
