"""Parser of RAPID modules: text to a syntax tree, by the grammar in `grammar.lark`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from lark import Lark, Token, Transformer, UnexpectedInput, UnexpectedToken, v_args

from twin.abb.rapid import syntax_tree as st
from twin.base.errors import RapidError, printable
from twin.data.logs.annotations import read_text

HEADER = re.compile(r"%%%.*?%%%", re.S)
WORDS = re.compile(r'"(?:[^"\n]|"")*"|![^\n]*|\bENDMODULE\b', re.I)
ESCAPE = re.compile(r"\\(\\|[0-9A-Fa-f]{2})|\"\"")

EXPECTED = {
    "ID": "a name",
    "NUMBER": "a number",
    "NUMBERS": "an aggregate",
    "STRING": "a string",
    "SIGN": "+ or -",
    "PRODUCT": "*, /, DIV or MOD",
    "RELATION": "a comparison",
    "OR": "OR or XOR",
    "SCOPE": "LOCAL or TASK",
    "KIND": "CONST, PERS or VAR",
    "MODE": "INOUT, PERS or VAR",
    "HANDLER": "ERROR, UNDO or BACKWARD",
    "STARS": "{*}",
    "PLACEHOLDER": "<SMT>",
    "$END": "the end of the file",
}
"""Words for the terminals of the grammar; others are as written in a program."""


class Source(NamedTuple):
    """Modules of a file, and remarks on its text."""

    modules: tuple[st.Module, ...]
    remarks: tuple[str, ...]


def parse(text: str, file: str = "<text>") -> Source:
    """Return the modules of a text.

    Args:
        text: one or several modules; lines with `%%%` around a header are skipped.
        file: name for messages.

    Example:
        >>> source = twin.rapid.parse("MODULE M CONST num a := 1 + 2; ENDMODULE")
        >>> source.modules[0].items[0].kind
        'CONST'

    Raises:
        RapidError: the text is not RAPID; the message states the line, and what is valid there.
    """
    text = HEADER.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    remarks = []
    ends = [found.end() for found in WORDS.finditer(text) if found[0].upper() == "ENDMODULE"]
    if ends:
        behind = re.sub(r"![^\n]*", "", text[ends[-1] :])
        if behind.strip():
            line = 1 + text[: ends[-1]].count("\n") + behind[: len(behind) - len(behind.lstrip())].count("\n")
            remarks.append(f"{file}, line {line}: text behind the last ENDMODULE is ignored")
        text = text[: ends[-1]]
    with _lock:
        parser, tree = _parser()
        tree.remarks.clear()
        try:
            modules: Any = parser.parse(text)  # the tree builder returns modules
        except UnexpectedInput as error:
            raise _syntax_error(error, text, file, parser) from None
        remarks += [f"{file}, {remark}" for remark in tree.remarks]
    return Source(tuple(module._replace(file=file, text=text) for module in modules), tuple(remarks))


def read_task(paths: Sequence[Path]) -> Source:
    """Return the modules of the files of one task; a remark names each that is encrypted and left out.

    Raises:
        OSError: a file cannot be read.
        RapidError: a file, or the only one, is not RAPID.
    """
    found = Source((), ())
    for path in paths:
        try:
            one = read_source(path)
        except RapidError as error:
            if error.kind != "encrypted" or len(paths) == 1:
                raise
            one = Source((), (f"{error}; left out",))
        found = Source(found.modules + one.modules, found.remarks + one.remarks)
    return found


def read_source(path: str | Path) -> Source:
    """Return the modules of a file.

    Raises:
        OSError: the file cannot be read.
        RapidError: it is not RAPID.
    """
    return parse(read_text(path), str(path))


_lock = Lock()
"""Lock of the parser, whose tree builder collects the remarks of one text."""


@cache
def _parser() -> tuple[Lark, Any]:
    grammar = files("twin.abb.rapid").joinpath("grammar.lark").read_text(encoding="utf-8")
    tree = _TreeBuilder()
    return Lark(grammar, parser="lalr", lexer="contextual", transformer=tree), tree


def _syntax_error(error: UnexpectedInput, text: str, file: str, parser: Lark) -> RapidError:
    """Return an error that states the place, what stands there, and what is valid."""
    if isinstance(error, UnexpectedToken):
        names, line = error.accepts or error.expected, error.line
        found = "the end of the file" if error.token.type == "$END" else printable(repr(str(error.token)))
        line = text.count("\n") + 1 if error.token.type == "$END" else line
    else:
        names, line = getattr(error, "allowed", None) or (), error.line
        found = repr(text[error.pos_in_stream or 0])
    written = {one.name: one.pattern.value for one in parser.terminals if one.pattern.type == "str"}
    words = sorted({**written, **EXPECTED}.get(name, name) for name in names if not name.startswith("__"))
    shown = ", ".join(words[:8]) + (", ..." if len(words) > 8 else "")
    return RapidError(f"{found} is not RAPID here, expected {shown}", "syntax", file, line)


def _plain_numbers(text: str) -> list[Any]:
    try:
        return json.loads(text)
    except ValueError:  # as 1. or .5 or +1
        return json.loads(re.sub(r"[^][, \t\r\n]+", lambda number: repr(float(number[0])), text))


def _escaped(found: re.Match[str]) -> str:
    """Return the character of two quotes, two backslashes, or a backslash with its code."""
    if found[0] in ('""', "\\\\"):
        return found[0][0]
    return chr(int(found[1], 16))


@v_args(inline=True)
class _TreeBuilder(Transformer):
    """Builder of the syntax tree while the text is parsed; one method per rule of the grammar.

    Attributes:
        remarks: sentences on text whose meaning readers may mistake.
    """

    def __init__(self) -> None:
        super().__init__(visit_tokens=False)
        self.remarks: list[str] = []

    # Declarations

    def start(self, *parts):
        return parts

    dimensions = optional = block = elseif = index = start

    def module(self, name, *rest):
        attributes = [part for part in rest if isinstance(part, Token) and part.type == "ID"]
        items = [part for part in rest if part is not None and not isinstance(part, Token)]
        return st.Module(str(name), tuple(one.upper() for one in attributes), tuple(items), "")

    def data(self, scope, kind, type_, name, dimensions, initial):
        scope = (scope or "").upper()
        return st.Data(kind.line, scope, kind.upper(), str(type_), str(name), dimensions or (), initial)

    def record(self, scope, word, name, *components):
        return st.RecordType(word.line, (scope or "").upper(), str(name), components)

    def component(self, type_, name):
        return str(type_), str(name)

    def alias(self, scope, word, type_, name):
        return st.Alias(word.line, (scope or "").upper(), str(type_), str(name))

    def proc(self, scope, word, name, parameters, body):
        return self._routine(word, scope, "", name, parameters, body)

    def func(self, scope, word, type_, name, parameters, body):
        return self._routine(word, scope, str(type_), name, parameters, body)

    def trap(self, scope, word, name, body):
        return self._routine(word, scope, "", name, None, body)

    def _routine(self, word, scope, type_, name, parameters, body):
        data, block, handlers = body
        scope = (scope or "").upper()
        return st.Routine(
            word.line, scope, word.upper(), type_, str(name), parameters or (), data, block, handlers
        )

    def parameters(self, *groups):
        return tuple(
            (False, (one,)) if isinstance(one, st.Parameter) else (True, one) for one in groups if one
        )

    def parameter(self, mode, type_, name, stars):
        return st.Parameter((mode or "").upper(), str(type_), str(name), (stars or "").count("*"))

    def body(self, *parts):
        data = tuple(part for part in parts if isinstance(part, st.Data))
        block, *handlers = parts[len(data) :]
        return data, block, dict(handlers)

    def handler(self, word, *rest):
        return word.upper(), rest[-1]

    # Statements

    def assign(self, target, value):
        return st.Assign(target.line, target, value)

    def call(self, name, arguments):
        return st.Call(name.line, str(name), arguments or ())

    def late_call(self, word, name, arguments):
        return st.Call(word.line, name, arguments or ())

    def label(self, name):
        return st.Label(name.line, name.lower())

    def goto(self, word, name):
        return st.Goto(word.line, name.lower())

    def if_then(self, word, condition, block, *others):
        *branches, otherwise = others
        last = () if otherwise is None else ((None, otherwise),)
        return st.If(word.line, ((condition, block), *branches, *last))

    def if_one(self, word, condition, statement):
        return st.If(word.line, ((condition, (statement,)),))

    def for_loop(self, word, name, first, last, step, block):
        return st.For(word.line, name.lower(), first, last, step, block)

    def while_loop(self, word, condition, block):
        return st.While(word.line, condition, block)

    def test(self, word, value, *cases):
        *cases, default = cases
        last = () if default is None else ((None, default),)
        return st.Test(word.line, value, (*cases, *last))

    def case(self, *parts):
        return parts[:-1], parts[-1]

    def return_value(self, word, value):
        return st.Return(word.line, value)

    def raise_error(self, word, value):
        return st.Raise(word.line, value)

    def jump(self, word):
        return st.Jump(word.line, word.upper())

    def connect(self, word, interrupt, trap):
        return st.Connect(word.line, interrupt, str(trap))

    def placeholder(self, text):
        return st.Placeholder(text.line, str(text))

    unfinished = placeholder

    # Expressions

    def keyword(self, name, value):
        return st.Argument(name.lower(), value, required=True)

    def arguments(self, *arguments):
        given = (one for one in arguments if one is not None)
        return tuple(one if isinstance(one, st.Argument) else st.Argument(None, one) for one in given)

    def named(self, name, value):
        return st.Argument(name.lower(), value)

    def passed_on(self, name, parameter):
        return st.Argument(name.lower(), None, parameter.lower())

    def relations(self, *parts):
        result = parts[0]
        for word, operand in zip(parts[1::2], parts[2::2], strict=True):
            result = st.Binary("AND", result, operand, word.line)
        return result

    def binary(self, left, operator, right):
        return st.Binary(operator.upper(), left, right, operator.line)

    def negation(self, word, operand):
        if isinstance(operand, st.Binary) and operand.operator == "AND":
            self.remarks.append(
                f"line {word.line}: NOT applies to all that AND joins behind it; parentheses would show it"
            )
        return st.Unary("NOT", operand, word.line)

    def sign(self, sign, operand):
        return st.Unary(str(sign), operand, sign.line)

    def parentheses(self, inner):
        return st.Unary("(", inner, 0)

    def number(self, text):
        based = text[:2].lower() in ("0x", "0b", "0o")
        return st.Literal(float(int(text, 0)) if based else float(text))

    def text(self, text):
        return st.Literal(ESCAPE.sub(_escaped, text[1:-1]))

    def numbers(self, text):
        return st.Numbers(_plain_numbers(text))

    def aggregate(self, *items):
        return st.Aggregate(tuple(item for item in items if item is not None))

    def function(self, name, arguments):
        return st.Function(str(name), arguments or (), name.line)

    def variable(self, name, *path):
        return st.Variable(str(name), path, name.line)

    def field(self, name):
        return str(name)
