"""Damage to a file of any format: bytes, lines, numbers and quoted texts."""

import re

import numpy as np

from tests.fuzz import unusual

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(\.\d*)?([eE][-+]?\d+)?")
QUOTED = re.compile(r'"[^"\n]*"')


def damaged(rng: np.random.Generator, content: bytes) -> bytes:
    """Apply one random damage."""
    return unusual.one_of(rng, DAMAGES)(rng, content)


def flip(rng, content):
    """Flip some bits."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        if changed:
            changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
    return bytes(changed)


def cut(rng, content):
    """Remove the end."""
    return content[: rng.integers(len(content) + 1)]


def hole(rng, content):
    """Remove a part."""
    at = rng.integers(len(content) + 1)
    return content[:at] + content[at + rng.integers(1, 50) :]


def noise(rng, content):
    """Insert random bytes."""
    at = rng.integers(len(content) + 1)
    return content[:at] + rng.bytes(rng.integers(1, 20)) + content[at:]


def lines(rng, content):
    """Delete a line, duplicate it, or exchange it with another line."""
    all_lines = content.splitlines(keepends=True)
    if not all_lines:
        return content
    a, b = rng.integers(len(all_lines), size=2)
    match rng.integers(3):
        case 0:
            del all_lines[a]
        case 1:
            all_lines.insert(b, all_lines[a])
        case _:
            all_lines[a], all_lines[b] = all_lines[b], all_lines[a]
    return b"".join(all_lines)


def encoded(rng, content):
    """Change the encoding, the line ends or the byte-order mark."""
    text = content.decode("utf-8", "replace")
    forms = (text.encode("utf-16"), text.encode("latin-1", "replace"), content.replace(b"\n", b"\r\n"))
    forms += (content.replace(b"\n", b"\r"), b"\xef\xbb\xbf" + content, content + b"\0")
    return unusual.one_of(rng, forms)


def replaced(pattern, make):
    """Return a damage function that replaces one match of a pattern."""

    def damage(rng, content):
        content_text = content.decode("utf-8", "replace")
        found = list(pattern.finditer(content_text))
        if not found:
            return content
        match = unusual.one_of(rng, found)
        made = make(rng, match.group())
        return (content_text[: match.start()] + made + content_text[match.end() :]).encode()

    return damage


number = replaced(NUMBER, unusual.number)
quoted = replaced(QUOTED, lambda rng, _: f'"{unusual.text(rng)}"')
DAMAGES = (flip, cut, hole, noise, lines, lines, encoded, number, number, number, quoted)
