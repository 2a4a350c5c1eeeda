"""Predefined functions of strings, bytes and bits, as functions of their values."""

from __future__ import annotations

import math
import struct
from typing import Any

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
