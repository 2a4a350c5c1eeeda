"""Changes to TOML files that respect their syntax, and random Denavit-Hartenberg tables."""

import json
import re

import numpy as np

from tests.fuzz import raw, unusual

KEY = re.compile(r"^(\w+) = (?!\"\"\")(.*[^\[{,])$", re.MULTILINE)
HEADER = re.compile(r"^\[+[\w.]+\]+$", re.MULTILINE)
ITEM = re.compile(r"[^\s\[\],][^\[\],]*,")
VALUES = (
    "{ a = 1 }", "[]", "[[]]", "[{}]", "true", "1979-05-27T07:32:00Z", "07:32:00", "nan", "-inf", "-1", "0",
    "1e400", "1_000", "0x10", "1" + "0" * 5000, '""', '"""\n"""', "'x'", "[1, 'x']", "[true, false]", "[1]",
    "[nan, nan, nan]", "[0, 0, 0]", '["a", "a"]', '["joint_1"]', "[" * 3000 + "]" * 3000,
    "{ box = [1, 1, 1] }", "1.5", "3", '"prismatic"', '["prismatic", "revolute"]', "[[1, 0], [0, 1]]",
    "[1e308, -1e308]",
)  # fmt: skip
HEADERS = (
    "[dh]", "[link.1]", "[link.9]", "[[link]]", "[joints]", "[drives]", "[drives.source]", "[loop.x]",
    "[joint.x]", "[poses]", "[x.y.z]",
)  # fmt: skip


def changed(rng: np.random.Generator, text: str) -> str:
    """Apply one random change."""
    return unusual.one_of(rng, CHANGES)(rng, text)


def _in_place_of(pattern, make):
    def change(rng, text):
        return raw.replaced(pattern, make)(rng, text.encode("utf-8", "replace")).decode("utf-8", "replace")

    return change


def quoted(rng, _=""):
    """Draw an unusual text in double quotes with JSON escapes, some of which are invalid in TOML."""
    return json.dumps(unusual.text(rng), ensure_ascii=False)


def _other_value(rng, line):
    made = quoted(rng) if rng.random() < 0.3 else unusual.one_of(rng, VALUES)
    return f"{line.partition(' = ')[0]} = {made}"


def _other_key(rng, line):
    key = unusual.one_of(rng, ("source", "name", "mass", "unphysical", "x", '""', "'[/x]'", "d", "q"))
    return f"{key} = {line.partition(' = ')[2]}"


def lines(rng, text):
    """Delete, duplicate or move a line."""
    return raw.lines(rng, text.encode()).decode()


number = _in_place_of(raw.NUMBER, unusual.number)
string = _in_place_of(raw.QUOTED, quoted)
value = _in_place_of(KEY, _other_value)
key = _in_place_of(KEY, _other_key)
header = _in_place_of(HEADER, lambda rng, _: unusual.one_of(rng, HEADERS))
no_header = _in_place_of(HEADER, lambda rng, _: "")
shorter = _in_place_of(ITEM, lambda rng, _: "")
CHANGES = (number, number, number, number, string, value, value, key, lines, header, no_header, shorter)


def random_table(rng: np.random.Generator) -> str:
    """Draw a `dh.toml` of one to six rows, often with masses, some of them physically impossible."""
    n = int(rng.integers(1, 7))
    angles = rng.choice([0, 90, -90, 180, 37.5], (2, n))
    rows = {"theta0_deg": angles[0], "d": rng.normal(size=n) * 0.3, "a": rng.normal(size=n) * 0.3}
    text = ['name = "random"', 'title = "A random table"', 'source = "chance"']
    if rng.random() < 0.2:
        text.append('unphysical = "chance"')
    text += ["[dh]", 'source = "chance"', *(f"{key} = {row.tolist()}" for key, row in rows.items())]
    text.append(f"alpha_deg = {angles[1].tolist()}")
    if rng.random() < 0.5:
        text.append(f"kinds = {json.dumps(rng.choice(['revolute', 'prismatic'], n).tolist())}")
    if rng.random() < 0.3:
        text += ["[joints]", 'source = "chance"', f"q_min = {[-2.0] * n}", f"q_max = {[3.0] * n}"]
    if rng.random() < 0.8:
        text += ["[links]", 'source = "chance"']
        for i in range(1, n + 1):
            points = rng.normal(size=(8, 3)) * 0.1
            tensor = np.trace(points.T @ points) * np.eye(3) - points.T @ points
            six = (
                tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]] if rng.random() < 0.95 else rng.normal(size=6)
            )
            text += [f"[link.{i}]", f"mass = {rng.uniform(0.1, 9)}", f"inertia = {six.tolist()}"]
            text.append(f"com = {(rng.normal(size=3) * 0.2).tolist()}")
    if rng.random() < 0.5:
        text += random_drives(rng, n)
    return "\n".join(text) + "\n"


def random_drives(rng: np.random.Generator, n: int) -> list[str]:
    """Draw a table `[drives]` of n joints with some columns omitted; rarely it is physically impossible."""
    columns = {
        "ratio": rng.choice([-100.0, 60.0, 1.0], n).tolist(),
        "rotor_inertia": (rng.uniform(0, 1e-3, n) - (1e-3 if rng.random() < 0.05 else 0.0)).tolist(),
    }
    for key in ("coulomb", "viscous", "stribeck_speed", "damping", "encoder_counts", "motor_torque_max"):
        if rng.random() < 0.5:
            columns[key] = (10.0 ** rng.uniform(-3, 3, n)).tolist()
    if rng.random() < 0.5:
        columns["stiffness"] = rng.choice([1e2, 1e5, np.inf], n).tolist()
    if rng.random() < 0.3:
        columns["coupling"] = (np.eye(n) + np.tril(rng.normal(size=(n, n)), -1)).tolist()
    if rng.random() < 0.3:
        columns["friction_at"] = rng.choice(["motor", "joint"], n).tolist()
    text = ["[drives]", *(f"{key} = {json.dumps(column)}" for key, column in columns.items())]
    text = [line.replace("Infinity", "inf") for line in text]
    return [*text, "[drives.source]", *(f'{key} = "chance"' for key in columns)]
