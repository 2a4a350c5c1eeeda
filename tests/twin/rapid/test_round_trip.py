"""Random programs are printed and read back as the same syntax tree."""

from hypothesis import given, settings
from hypothesis import strategies as some

from twin.rapid import syntax_tree as st
from twin.rapid.language import parse

WORDS = ("AND", "OR", "XOR", "DIV", "MOD", "+", "-", "*", "/", "=", "<>", "<", ">=")


def text_of(node):
    """Return a node of a syntax tree as RAPID."""
    match node:
        case st.Literal(value):
            return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else repr(value)
        case st.Numbers(items):
            return repr(items)
        case st.Aggregate(items):
            return "[" + ",".join(map(text_of, items)) + "]"
        case st.Variable(name, path):
            steps = [f".{s}" if isinstance(s, str) else "{" + ",".join(map(text_of, s)) + "}" for s in path]
            return name + "".join(steps)
        case st.Function(name, arguments):
            return f"{name}({argument_text(arguments)})"
        case st.Unary("(", operand):
            return f"({text_of(operand)})"
        case st.Unary(operator, operand):
            return f"{operator} {text_of(operand)}"
        case st.Binary(operator, left, right):
            return f"{text_of(left)} {operator} {text_of(right)}"
        case st.Assign(_, target, value):
            return f"{text_of(target)} := {text_of(value)};"
        case st.Call(_, name, arguments):
            shown = name if isinstance(name, str) else f"%{text_of(name)}%"
            return f"{shown} {argument_text(arguments)};"
        case st.If(_, branches):
            words = ["IF", *["ELSEIF"] * (len(branches) - 1)]
            lines = [
                "ELSE " + block_text(block)
                if condition is None
                else f"{word} {text_of(condition)} THEN {block_text(block)}"
                for word, (condition, block) in zip(words, branches, strict=True)
            ]
            return "\n".join([*lines, "ENDIF"])
    raise AssertionError(node)


def argument_text(arguments):
    parts = []
    for name, value, passed_on in arguments:
        if name is None:
            parts.append(text_of(value))
        elif passed_on:
            parts.append(f"\\{name}?{passed_on}")
        else:
            parts.append(f"\\{name}" + (f":={text_of(value)}" if value else ""))
    return ", ".join(parts)


def block_text(block):
    return "\n".join(map(text_of, block))


def without_lines(node):
    """Return a node with its line numbers set to 0."""
    if isinstance(node, tuple):
        parts = [without_lines(one) for one in node]
        if not hasattr(node, "_fields"):
            return tuple(parts)
        if "line" in node._fields:
            parts[node._fields.index("line")] = 0
        return type(node)(*parts)
    return node


names = some.from_regex(r"[a-z]{1,3}_[A-Z0-9]{1,3}", fullmatch=True)
lower_names = names.map(str.lower)
numbers = some.floats(0, 1e6, allow_nan=False) | some.integers(0, 99).map(float)
texts = some.text(some.characters(codec="cp1252", exclude_characters="\n\r", exclude_categories=["C"]))
literals = some.builds(st.Literal, numbers) | some.builds(st.Literal, texts)
plain = some.lists(some.floats(-1e4, 1e4), min_size=1, max_size=4).map(st.Numbers)


def extended(inner):
    """Return strategies for expressions around inner ones."""
    operand = some.builds(lambda one: st.Unary("(", one, 0), inner) | literals
    variable = variables(operand)
    return some.one_of(
        some.builds(
            lambda operator, a, b: st.Binary(operator, a, b, 0), some.sampled_from(WORDS), operand, operand
        ),
        some.builds(lambda one: st.Unary("NOT", one, 0), operand),
        some.builds(lambda one: st.Unary("-", one, 0), operand),
        some.builds(lambda items: st.Aggregate(tuple(items)), some.lists(variable, min_size=1, max_size=3)),
        some.builds(lambda name, given: st.Function(name, given, 0), names, arguments(inner)),
        variable,
    )


def variables(index):
    path = some.lists(lower_names | some.tuples(index) | some.tuples(index, index), max_size=2).map(tuple)
    return some.builds(lambda name, path: st.Variable(name, path, 0), names, path)


def arguments(value):
    required = some.builds(lambda one: st.Argument(None, one), value)
    optional = some.one_of(
        some.builds(lambda name, one: st.Argument(name, one), lower_names, value),
        some.builds(lambda name: st.Argument(name, None), lower_names),
        some.builds(lambda name, other: st.Argument(name, None, other), lower_names, lower_names),
    )
    return some.tuples(some.lists(required, max_size=2), some.lists(optional, max_size=2)).map(
        lambda both: (*both[0], *both[1])
    )


expressions = some.recursive(literals | plain | variables(literals), extended, max_leaves=8)
simple = some.one_of(
    some.builds(lambda target, value: st.Assign(0, target, value), variables(literals), expressions),
    some.builds(lambda name, given: st.Call(0, name, given), names, arguments(expressions)),
    some.builds(lambda text: st.Call(0, st.Literal(text), ()), names),
)


def nested(statement):
    """Return strategies for statements around inner ones."""
    block = some.lists(statement, max_size=3).map(tuple)
    branches = some.lists(some.tuples(expressions, block), min_size=1, max_size=3).map(tuple)
    otherwise = some.lists(some.tuples(some.none(), block), max_size=1).map(tuple)
    return some.builds(lambda branches, last: st.If(0, (*branches, *last)), branches, otherwise)


@settings(max_examples=40, deadline=None)
@given(some.lists(some.recursive(simple, nested, max_leaves=6), max_size=4).map(tuple))
def test_random_programs_are_read_back(block):
    text = f"MODULE m\nPROC p()\n{block_text(block)}\nENDPROC\nENDMODULE"
    (routine,) = parse(text).modules[0].items
    assert without_lines(routine.block) == block
