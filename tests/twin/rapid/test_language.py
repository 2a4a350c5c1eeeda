"""RAPID modules are parsed into trees with line numbers; bad text gets one sentence with the line."""

import pytest

from tests.support import rapid_programs
from tests.support.rapid_programs import module
from twin.errors import RapidError
from twin.rapid import interpret
from twin.rapid import syntax_tree as st
from twin.rapid.language import Source, parse, read_source


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


# Programs run as on a controller: scopes, arithmetic in single precision, calls, loops, errors.


def run(body, before="", **options):
    """Return the program of a `main` with these lines, and the texts that it writes."""
    program = rapid_programs.program(body, before=before, **options)
    return program, [note.text.removeprefix("TPWrite: ") for note in program.notes]


def written(body, before=""):
    program, texts = run(body, before)
    assert program.fault is None, program.fault
    return texts


def fault(body, before="", **options):
    program, _ = run(body, before, **options)
    return str(program.fault), program.fault.kind


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7 DIV 2 + 7 MOD 4", "6"), ("10 * ((-7) DIV 2) + (-7) MOD 2", "-31"), ("-2 + 0x1F", "29"),
        ("Round(2.5) + Trunc(-1.9) + Abs(-1)", "3"), ("Sin(30) + ATan2(1, 1)", "45.5"),
        ('StrLen("abc") + StrFind("a b", 1, " ") + StrMatch("abcd", 1, "cd")', "8"),
        ("0.1 + 0.2 = 0.3", "TRUE"), ("NOT FALSE AND FALSE", "TRUE"), ("1 < 2 OR 1 / 0 = 1", "TRUE"),
        ("(2 >= 2) AND (1 <> 2)", "TRUE"), ("[1,2,3] = place", "TRUE"), ("place + place * 2", "[3,6,9]"),
        ("place.y + list{2, 1}", "5"), ("Dim(list, 2)", "2"),
        ('NumToStr(1.25, 1) + "|" + StrPart("robot", 2, 3)', "1.2|obo"),
    ],
)  # fmt: skip
def test_expressions(expression, value):
    before = "CONST pos place := [1,2,3]; VAR num list{2,2} := [[1,2],[3,4]]; VAR num n;"
    assert written(f"TPWrite ValToStr({expression});", before) == [value]


def test_assignments_copy_records_and_arrays():
    before = "RECORD layer num height; bool turned; ENDRECORD VAR layer layers{2} := [[0,FALSE],[40,TRUE]];"
    assert written("IF layers{2}.turned TPWrite ValToStr(layers);", before) == ["[[0,FALSE],[40,TRUE]]"]
    before = "VAR robtarget a; VAR robtarget b; VAR num list{2} := [1, 2]; VAR num other{2};"
    body = "a.trans := [1,2,3]; b := a; b.trans.x := 9; other := list; other{1} := 7;"
    body += "TPWrite ValToStr(a.trans.x) + ValToStr(b.trans.x) + ValToStr(list{1}) + ValToStr(other{1});"
    assert written(body, before) == ["1917"]


def test_loops_labels_and_tests():
    before = "VAR num sum; VAR num i := 5;"
    body = """FOR i FROM 3 TO 1 DO sum := 10 * sum + i; ENDFOR
        WHILE sum < 330 DO Incr sum; ENDWHILE
        again:
        i := i - 1;
        IF i > 2 GOTO again;
        TEST i CASE 1: sum := 0; CASE 2, 3: Add sum, i; DEFAULT: sum := -1; ENDTEST
        IF i = 9 THEN i := 0; ELSEIF i = 2 THEN sum := sum + 0.5; ELSE i := -1; ENDIF
        TPWrite ValToStr(sum) + " " + ValToStr(i);"""
    assert written(body, before) == ["332.5 2"]


def test_routines_take_values_references_and_optional_parameters():
    before = """PROC change(num a, INOUT num b \\num more | switch less)
            b := b + a;
            IF Present(more) b := b + more;
            IF Present(less) b := -b;
        ENDPROC
        PROC pass(\\num more)
            VAR num x := 1;
            change 1, x \\more?more;
            TPWrite ValToStr(x);
        ENDPROC
        FUNC num factorial(num n)
            IF n <= 1 RETURN 1;
            RETURN n * factorial(n - 1);
        ENDFUNC
        VAR num y := 10;"""
    body = "change 1, y; TPWrite ValToStr(y); change 0, y\\less; TPWrite ValToStr(y); pass; pass\\more:=5;"
    body += 'TPWrite ValToStr(factorial(5)); %"pass"%;'
    assert written(body, before) == ["11", "-11", "2", "7", "120"]


def test_data_of_modules_may_use_data_that_is_declared_later():
    assert written("TPWrite ValToStr(a);", "CONST num a := 2 * b; CONST num b := 3;") == ["6"]
    message, kind = fault("TPWrite ValToStr(a);", "CONST num a := b; CONST num b := a;")
    assert "depends on itself" in message
    assert kind == "value"


def test_local_names_hide_shared_ones_and_modules_share_the_rest():
    first = """MODULE A
        LOCAL VAR num x := 1; VAR num shared := 5;
        PROC main() show; TPWrite ValToStr(x); ENDPROC
        ENDMODULE"""
    second = """MODULE B
        LOCAL VAR num x := 2;
        PROC show() TPWrite ValToStr(x) + ValToStr(shared); ENDPROC
        ENDMODULE"""
    modules = parse(first, "a.mod").modules + parse(second, "b.mod").modules
    program = interpret(Source(modules, ()))
    assert [note.text for note in program.notes] == ["TPWrite: 25", "TPWrite: 1"]


def test_error_handlers_retry_and_try_the_next():
    before = """VAR num n := 0;
        PROC risky()
            IF n < 2 RAISE 7;
            TPWrite "done";
        ENDPROC
        PROC work()
            risky;
            RAISE 8;
            TPWrite "after";
        ERROR
            IF ERRNO = 7 THEN n := n + 1; RETRY; ENDIF
            TRYNEXT;
        ENDPROC"""
    assert written("work;", before) == ["done", "after"]
    assert fault("RAISE 5;") == ("a.mod, line 4: error 5 has no handler", "value")


@pytest.mark.parametrize(
    ("body", "message", "kind"),
    [
        ("VAR num xx; x := 1;", "x is not declared, did you mean 'xx'?", "name"),
        ("MoveX p;", "there is no procedure or instruction MoveX, did you mean", "name"),
        ('VAR num x; x := "a";', 'expected num, got "a"', "type"),
        ("VAR num x{2}; x{3} := 1;", "index 3 of x is not in 1 to 2", "value"),
        ("VAR unknown x;", "there is no type unknown", "name"),
        ("tool0.tload.mass := 1;", "tool0 is constant", "type"),
        ("VAR pos p; p.w := 1;", "pos has no component w, it has x, y, z", "name"),
        ("main;", "main is call 101 within another, the limit is 100", "value"),
        ("GOTO nowhere;", "there is no label nowhere", "name"),
        ("VAR num x; x := CJointT();", "CJointT needs a robot", "refusal"),
    ],
)
def test_faults_name_file_line_and_what_is_valid(body, message, kind):
    found, of = fault(body)
    assert found.startswith("a.mod, line 4: ")
    assert message in found
    assert of == kind


def test_endless_loops_end_at_a_limit():
    program, _ = run("WHILE TRUE DO WaitTime 0; ENDWHILE", step_limit=500)
    assert program.stopped.startswith("stopped after 500 statements")
    assert program.fault is None
    move = "MoveAbsJ [[0,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]], v100, fine, tool0;"
    program, _ = run(f"WHILE TRUE DO {move} ENDWHILE", moves=3)
    assert len(program.moves) == 3
    assert "stopped after 3 moves" in program.stopped


def test_signals_are_logged_and_inputs_have_values():
    body = 'SetDO grip, 1; WaitDI there, 1; WaitUntil there = 1; IF DInput(there) = 1 TPWrite "yes";'
    program, texts = run(body, inputs={"there": 1.0}, answer_after=0.5)
    assert program.fault is None
    assert "SetDO grip (logged)" in texts
    assert "WaitDI there (taken as answered)" in texts
    assert "yes" in texts
    assert sum(pause.seconds for pause in program.events) == 1.0
