"""Syntax tree of a RAPID module: expressions, statements and declarations with their line numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

# ------------------------------------------------------------------------------------------ expressions


class Literal(NamedTuple):
    """Number or string."""

    value: float | str


class Numbers(NamedTuple):
    """Aggregate of plain numbers, as nested lists; its type follows from its destination."""

    items: list[Any]


class Aggregate(NamedTuple):
    """Aggregate of expressions; its type follows from its destination."""

    items: tuple[Any, ...]


class Variable(NamedTuple):
    """Data object, with the path to a part of it: tuples of indices, and names of components."""

    name: str
    path: tuple[Any, ...]
    line: int


class Function(NamedTuple):
    """Call of a function."""

    name: str
    arguments: tuple[Argument, ...]
    line: int


class Unary(NamedTuple):
    """`NOT`, `+` or `-` before an operand."""

    operator: str
    operand: Any
    line: int


class Binary(NamedTuple):
    """Operator between two operands; the operator is in upper case."""

    operator: str
    left: Any
    right: Any
    line: int


class Argument(NamedTuple):
    r"""Argument of a call.

    Attributes:
        name: name of an optional argument, and of a required one that is given by its name; otherwise None.
        value: expression, None for a switch.
        passed_on: parameter that states whether the argument is there, from `\name?parameter`.
        required: whether the argument is a required one with its name, as `ToPoint:=p`.
    """

    name: str | None
    value: Any
    passed_on: str | None = None
    required: bool = False


# ------------------------------------------------------------------------------------------- statements


class Assign(NamedTuple):
    """Assignment to a data object or a part of it."""

    line: int
    target: Variable
    value: Any


class Call(NamedTuple):
    """Call of a procedure or instruction; the name is an expression in a late call."""

    line: int
    name: Any
    arguments: tuple[Argument, ...]


class Label(NamedTuple):
    """Label for GOTO."""

    line: int
    name: str


class Goto(NamedTuple):
    """Jump to a label."""

    line: int
    label: str


class If(NamedTuple):
    """Branches as pairs of a condition and a block; the condition of `ELSE` is None."""

    line: int
    branches: tuple[tuple[Any, Block], ...]


class For(NamedTuple):
    """`FOR` loop; `step` is None where none is written."""

    line: int
    name: str
    first: Any
    last: Any
    step: Any
    block: Block


class While(NamedTuple):
    """`WHILE` loop."""

    line: int
    condition: Any
    block: Block


class Test(NamedTuple):
    """Cases as pairs of values and a block; the values of `DEFAULT` are None."""

    line: int
    value: Any
    cases: tuple[tuple[tuple[Any, ...] | None, Block], ...]


class Return(NamedTuple):
    """`RETURN`; the value is None in a procedure."""

    line: int
    value: Any


class Raise(NamedTuple):
    """`RAISE`; the value is None in an error handler."""

    line: int
    value: Any


class Jump(NamedTuple):
    """`EXIT`, `RETRY` or `TRYNEXT`."""

    line: int
    word: str


class Connect(NamedTuple):
    """Connection of an interrupt with a trap."""

    line: int
    interrupt: Any
    trap: str


class Placeholder(NamedTuple):
    """Unfinished statement or expression, such as `<SMT>`."""

    line: int
    text: str


Block = tuple[Any, ...]

# ----------------------------------------------------------------------------------------- declarations


class Data(NamedTuple):
    """Declaration of a data object; `kind` is CONST, PERS or VAR."""

    line: int
    scope: str
    kind: str
    type: str
    name: str
    dimensions: tuple[Any, ...]
    initial: Any


class RecordType(NamedTuple):
    """Declaration of a record; components as pairs of type and name."""

    line: int
    scope: str
    name: str
    components: tuple[tuple[str, str], ...]


class Alias(NamedTuple):
    """Second name of a type."""

    line: int
    scope: str
    type: str
    name: str


class Parameter(NamedTuple):
    """Parameter of a routine; `stars` counts the dimensions of an array."""

    mode: str
    type: str
    name: str
    stars: int


class Routine(NamedTuple):
    """Procedure, function or trap.

    Attributes:
        line: line of its first word.
        scope: LOCAL, TASK or "".
        kind: PROC, FUNC or TRAP.
        type: type of a function's value, otherwise "".
        name: name as written.
        parameters: groups of parameters: one for a required one, alternatives for an optional one.
        data: local declarations.
        block: statements.
        handlers: blocks by the words ERROR, UNDO and BACKWARD.
    """

    line: int
    scope: str
    kind: str
    type: str
    name: str
    parameters: tuple[tuple[bool, tuple[Parameter, ...]], ...]
    data: tuple[Data, ...]
    block: Block
    handlers: dict[str, Block]


class Module(NamedTuple):
    """Module of a file.

    Attributes:
        name: name as written.
        attributes: attributes in upper case, such as SYSMODULE.
        items: declarations and routines, in order.
        file: name of the file, for messages.
        text: text of the file, up to its last module.
    """

    name: str
    attributes: tuple[str, ...]
    items: tuple[Any, ...]
    file: str
    text: str = ""
