"""RAPID modules are parsed into trees with line numbers; bad text gets one sentence with the line."""

import pytest

from tests.support.rapid_programs import module
from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.language import parse, read_source
from twin.base.errors import RapidError


def block(text):
    """Return the statements of a procedure with these lines."""
    return module(text).modules[0].items[0].block


def test_declarations_keep_scope_kind_type_and_line():
    text = """MODULE Tool(SYSMODULE, NOSTEPIN)
    RECORD grip
        num width;
        pos place;
    ENDRECORD
    ALIAS num level;
    LOCAL CONST num limits{2, 2} := [[1, 2], [3, 4]];
    TASK PERS tooldata t := [TRUE, [[0,0,1],[1,0,0,0]], [1,[0,0,1],[1,0,0,0],0,0,0]];
    FUNC num twice(num x \\switch exact | num by, INOUT num list{*,*})
        RETURN 2 * x;
    ENDFUNC
    TRAP stop_it
        RETURN;
    ENDTRAP
ENDMODULE"""
    (module,) = parse(text).modules
    assert module.attributes == ("SYSMODULE", "NOSTEPIN")
    record, alias, limits, tool, twice, trap = module.items
    assert record.components == (("num", "width"), ("pos", "place"))
    assert (alias.name, alias.type) == ("level", "num")
    assert (limits.scope, limits.kind, limits.line, len(limits.dimensions)) == ("LOCAL", "CONST", 7, 2)
    assert isinstance(tool.initial, st.Aggregate)
    assert [optional for optional, _ in twice.parameters] == [False, True, False]
    assert [one.name for one in twice.parameters[1][1]] == ["exact", "by"]
    assert twice.parameters[2][1][0] == st.Parameter("INOUT", "num", "list", 2)
    assert (trap.kind, trap.line) == ("TRAP", 12)


def test_an_aggregate_of_numbers_is_one_token():
    (move,) = block("MoveL [[1.5,-2,+3.],[1,0,0,0],[0,0,0,0],[9E9,9E+09,.5,9e9,9E9,9E9]], v100, fine, tool0;")
    position, *turns, external = move.arguments[0].value.items
    assert (position, turns) == ([1.5, -2, 3.0], [[1, 0, 0, 0], [0, 0, 0, 0]])
    assert external == [9e9, 9e9, 0.5, 9e9, 9e9, 9e9]


def test_optional_arguments_stand_with_and_without_commas():
    (call,) = block("MoveAbsJ p\\NoEOffs, v10, \\T:=2, fine, tool0 \\WObj:=w\\on?given;")
    assert [one.name for one in call.arguments] == [None, "noeoffs", None, "t", None, None, "wobj", "on"]
    assert [one.passed_on for one in call.arguments] == [*[None] * 7, "given"]


STATEMENTS = """
x := 1; go; go (1), 2; back: x := 1; GOTO back; IF x = 1 go; IF x THEN go; ELSEIF y THEN ELSE stop; ENDIF
FOR i FROM 3 TO 1 STEP -1 DO go; ENDFOR while x do ENDWHILE TEST x CASE 1, -2: go; DEFAULT: stop; ENDTEST
RETURN; RAISE 5; EXIT; CONNECT i WITH t; %"go"% 1;"""
KINDS = "Assign Call Call Label Assign Goto If If For While Test Return Raise Jump Connect Call"


def test_every_statement():
    assert " ".join(type(one).__name__ for one in block(STATEMENTS)) == KINDS


def test_not_binds_weaker_than_and_which_is_remarked():
    source = module("x := NOT a AND b;\ny := (NOT a) AND b;")
    first, second = source.modules[0].items[0].block
    assert first.value.operator == "NOT"
    assert first.value.operand.operator == "AND"
    assert second.value.operator == "AND"
    told = "a.mod, line 4: NOT applies to all that AND joins behind it; parentheses would show it"
    assert source.remarks == (told,)


def test_header_comments_and_text_behind_the_end_keep_line_numbers():
    text = '%%%\nVERSION:1\n%%%\nMODULE M ! ENDMODULE\nVAR string s := "a""b";\nENDMODULE\n\nrest'
    source = parse(text, "a.mod")
    assert source.modules[0].items[0].line == 5
    assert source.modules[0].items[0].initial.value == 'a"b'
    assert source.remarks == ("a.mod, line 8: text behind the last ENDMODULE is ignored",)


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [("MoveL p1, v100 z1;", 4, "'z1'"), ("x := 2 * -1;", 4, "'-'"), ("IF x THEN\ngo;", 6, "'ENDPROC'")],
)
def test_bad_text_gets_a_sentence_with_its_line(text, line, found):
    told = f"^a.mod, line {line}: {found} is not RAPID here, expected "
    with pytest.raises(RapidError, match=told) as caught:
        block(text)
    assert (caught.value.kind, caught.value.line) == ("syntax", line)


def test_files_in_code_page_1252_are_read_and_encrypted_ones_are_named(tmp_path):
    path = tmp_path / "a.mod"
    path.write_bytes("MODULE M ! größer\nENDMODULE".encode("cp1252"))
    assert read_source(path).modules[0].name == "M"
    path.write_bytes(bytes(range(256)) * 4)
    with pytest.raises(RapidError, match="encrypted or not text"):
        read_source(path)
