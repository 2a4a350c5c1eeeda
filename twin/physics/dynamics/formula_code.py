"""Equations of an arm as a function in C or Python: straight-line code that is short and exact.

The recursions of `multibody/recursions.py` are traced with the numbers of the robot.  The code is not
the expanded sums, whose length grows tenfold with each joint, but a few hundred operations: constants are
evaluated, terms with zeros of the geometry are dropped, and repeated expressions are computed once.  C code
that is compiled without contraction (`-ffp-contract=off`) has the bits of the twin's functions, as far as
its `cos` and `sin` agree.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from twin.base.errors import UnknownNameError
from twin.base.version import __version__
from twin.physics.multibody.kernels import KERNELS, Symbols
from twin.physics.multibody.recursions import ZERO
from twin.physics.multibody.trace import FUNCTIONS, Scalar, write_python
from twin.physics.robot.robot import Robot

Quantity = Literal["tau", "M", "C", "g", "T", "J", "Jd"]
Language = Literal["c", "python"]
Parameters = Literal["numbers", "symbols", "base"]


class Formula(NamedTuple):
    """Quantity that can be written as code: what it is, its arguments, and its traced kernel."""

    title: str
    arguments: tuple[str, ...]
    kernel: str


FORMULAS = {
    "tau": Formula("joint torques of a motion, in N m", ("q", "qd", "qdd"), "inverse_dynamics"),
    "M": Formula("mass matrix, in kg m^2", ("q",), "mass_matrix"),
    "C": Formula("Coriolis matrix of Christoffel symbols; C qd is a torque", ("q", "qd"), "coriolis_matrix"),
    "g": Formula("joint torques against gravity, in N m", ("q",), "gravity_torque"),
    "T": Formula("pose of the flange in the base frame, in m", ("q",), "tool_pose"),
    "J": Formula("Jacobian of the flange, [v; omega] = J qd, base frame", ("q",), "jacobian"),
    "Jd": Formula("time derivative of the Jacobian of the flange", ("q", "qd"), "jacobian_rate"),
}
UNITS = {"q": "rad", "qd": "rad/s", "qdd": "rad/s^2"}
KINEMATIC = ("T", "J", "Jd")


def formula_code(
    robot: Robot,
    quantity: Quantity = "tau",
    language: Language = "c",
    parameters: Parameters = "numbers",
    base: Sequence[int] = (),
) -> str:
    """Return the source of a function that computes a quantity of an arm.

    Args:
        robot: the arm, with its payload and mounting.
        quantity: `tau`, `M`, `C`, `g`, `T` (pose of the flange), `J` or `Jd`.
        language: `"c"` (C99) or `"python"` (with `math` alone).
        parameters: how masses occur: `"numbers"`; `"symbols"`, as an argument of the function;
            or `"base"`, as an argument with the base parameters, the fewest that determine the torques.
        base: indices of the dynamic parameters that represent the base parameters, for `"base"`; see
            `twin.identification.torque_model.base_parameters`.

    Raises:
        RobotError: the masses of the links are unknown.
        UnknownNameError: there is no such quantity.

    Example:
        >>> import twin
        >>> from twin.physics.dynamics.formula_code import formula_code
        >>> robot = twin.load("two_link").mounted("wall")  # two rods of 1 kg and 1 m
        >>> exec(formula_code(robot, "g", "python"))
        >>> [round(torque, 4) for torque in two_link_g([0, 0])]
        [19.62, 4.905]
    """
    if quantity not in FORMULAS:
        raise UnknownNameError(f"unknown quantity {quantity!r}: known are {', '.join(FORMULAS)}")
    if quantity not in KINEMATIC:
        robot.require_inertia()
    formula, on = FORMULAS[quantity], _symbols(robot, parameters, base)
    kernel = KERNELS[formula.kernel]
    values, shape = (kernel.trace or _coriolis)(on), kernel.out(robot.n, robot.tree.n)
    values = [on.trace.scalar(value) for value in values]
    arguments = dict.fromkeys(formula.arguments, (robot.n,))
    if quantity not in KINEMATIC and parameters == "symbols":
        arguments |= {"inertias": (robot.tree.n, 10)}
    elif quantity not in KINEMATIC and parameters == "base":
        arguments |= {"base": (len(base),)}
    write = _c_source if language == "c" else _python_source
    return write(robot, quantity, arguments, shape, values)


def _symbols(robot: Robot, parameters: str, base: Sequence[int]) -> Symbols:
    """Return the symbols of a trace whose masses, gravity and tool are numbers, arguments or zero."""
    on = Symbols(robot.tree, robot.embedding, robot.embedding_offset)
    on.T_flange_tool = np.eye(4).tolist()
    x, y, z = robot.gravity.tolist()
    on.gravity = (x, y, z)
    if parameters == "numbers":
        on.inertias = robot.tree.inertias.tolist()
    elif parameters == "base":
        table: list[list[Any]] = np.zeros((robot.tree.n, 10)).tolist()
        for value, index in zip(on.trace.inputs("base", len(base)), base, strict=True):
            link, entry = divmod(int(index), 10)
            table[link][entry] = value
        on.inertias = table
    return on


def _coriolis(on: Symbols) -> list[Scalar]:
    """Return the rows of the Coriolis matrix by polarisation of the quadratic velocity torque h.

    Column j is `(h(qd + e_j) - h(qd) - h(e_j)) / 2`.
    """
    n, zero = on.n, [0.0] * on.n

    def h(qd: Sequence[Scalar | float]) -> list[Scalar]:
        return on.torque(list(qd), zero, ZERO)

    columns, at_rest = [], h(on.qd)
    for j in range(n):
        unit = [float(i == j) for i in range(n)]
        ahead, alone = h([rate + step for rate, step in zip(on.qd, unit, strict=True)]), h(unit)
        columns.append([0.5 * (a - b - c) for a, b, c in zip(ahead, at_rest, alone, strict=True)])
    return [value for row in zip(*columns, strict=True) for value in row]


def operations(values: Sequence[Scalar]) -> dict[str, int]:
    """Return the numbers of multiplications, additions and subtractions, and cosines and sines."""
    counts, seen, pending = {"*": 0, "+": 0, "cos": 0}, set(), list(values)
    while pending:
        scalar = pending.pop()
        if id(scalar) not in seen:
            seen.add(id(scalar))
            kind = {"-": "+", "sin": "cos"}.get(scalar.op, scalar.op)
            if kind in counts:
                counts[kind] += 1
            pending += [argument for argument in scalar.args if isinstance(argument, Scalar)]
    return counts


def _header(
    robot: Robot, quantity: str, arguments: dict[str, tuple[int, ...]], values: Sequence[Scalar]
) -> str:
    """Return the description of a function, one fact per line."""
    count = operations(values)
    lines = [
        f"{robot.name}: {FORMULAS[quantity].title}",
        f"joints: {', '.join(robot.joint_names)}",
        *(f"{name}: joint vector, in {UNITS[name]}" for name in arguments if name in UNITS),
    ]
    if "inertias" in arguments:
        lines.append("inertias: per link m, m c (3), I about its origin (xx, yy, zz, xy, xz, yz), SI units")
        lines.append(f"links: {', '.join(robot.tree.links)}; those of this robot are INERTIAS")
    if "base" in arguments:
        lines.append("base: base parameters of the arm as it is mounted, SI units")
    lines.append(f"{count['*']} multiplications, {count['+']} additions, {count['cos']} cosines and sines")
    return "\n".join([*lines, f"written by irb-twin {__version__}"])


def _function_name(robot: Robot, quantity: str) -> str:
    return re.sub(r"\W", "_", f"{robot.name}_{quantity}", flags=re.ASCII)


def _c_source(
    robot: Robot,
    quantity: str,
    arguments: dict[str, tuple[int, ...]],
    shape: tuple[int, ...],
    values: Sequence[Scalar],
) -> str:
    """Return a C99 file with one function."""
    text = write_python(values)

    def dimensions(sizes: Sequence[int]) -> str:
        return "".join(f"[{size}]" for size in sizes)

    given = [f"const double {name}{dimensions(sizes)}" for name, sizes in arguments.items()]
    # A pointer to an array without const: C has no implicit conversion to one with const.
    given = [word.removeprefix("const ") if word.count("[") > 1 else word for word in given]
    lines = [
        f"/* {_header(robot, quantity, arguments, values)}".replace("\n", "\n * ") + " */",
        "#include <math.h>",
        "",
    ]
    if "inertias" in arguments:
        rows = ",\n    ".join("{" + ", ".join(map(repr, row)) + "}" for row in robot.tree.inertias.tolist())
        lines += [f"double INERTIAS[{robot.tree.n}][10] = {{\n    {rows}}};", ""]
    result = f"double {quantity}{dimensions(shape)}"
    lines.append(f"void {_function_name(robot, quantity)}({', '.join([*given, result])})")
    lines.append("{")
    lines += [f"    const double {_indexed(line)};" for line in text.lines]
    used = {name.partition("[")[0] for name in text.inputs}
    lines += [f"    (void){name};" for name in arguments if name not in used]
    for place, value in zip(np.ndindex(shape), text.values, strict=True):
        lines.append(f"    {quantity}{dimensions(place)} = {_indexed(value)};")
    return "\n".join([*lines, "}", ""])


def _python_source(
    robot: Robot,
    quantity: str,
    arguments: dict[str, tuple[int, ...]],
    shape: tuple[int, ...],
    values: Sequence[Scalar],
) -> str:
    """Return a Python module with one function, which takes and returns lists."""
    text = write_python(values)
    written = "".join([*text.lines, *text.values])
    used = ", ".join(name for name in FUNCTIONS if name in ("cos", "sin") or f"{name}(" in written)
    lines = [f'"""{_header(robot, quantity, arguments, values)}\n"""', "", f"from math import {used}", ""]
    if "inertias" in arguments:
        lines += [f"INERTIAS = {robot.tree.inertias.tolist()!r}", ""]
    lines += ["", f"def {_function_name(robot, quantity)}({', '.join(arguments)}):"]
    lines.append(f'    """Return {quantity}: {FORMULAS[quantity].title}."""')
    lines += [f"    {_indexed(line)}" for line in text.lines]
    rows = [_indexed(value) for value in text.values]
    if len(shape) == 2:
        width = shape[1]
        rows = [f"[{', '.join(rows[k : k + width])}]" for k in range(0, len(rows), width)]
    lines += ["    return [", *(f"        {row}," for row in rows), "    ]", ""]
    return "\n".join(lines)


def _indexed(expression: str) -> str:
    """Return an expression with nested indices, for lists of lists."""
    return re.sub(r"\[(\d+), (\d+)\]", r"[\1][\2]", expression)
