"""Programs run as on a controller: scopes, arithmetic in single precision, calls, loops, errors."""

import pytest

from tests.support import rapid_programs
from twin.abb.rapid.language import Source, parse
from twin.abb.rapid.programs import interpret
from twin.abb.rapid.signals import Connection, Signals


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
        ("VAR robtaget x;", "there is no type robtaget, did you mean 'robtarget'?", "name"),
        ("tool0.tload.mass := 1;", "tool0 is constant", "type"),
        ("VAR pos p; p.w := 1;", "pos has no component w, it has x, y, z", "name"),
        ("GOTO nowhere;", "there is no label nowhere", "name"),
    ],
)
def test_faults_name_file_line_and_what_is_valid(body, message, kind):
    found, of = fault(body)
    assert found.startswith("a.mod, line 4: ")
    assert message in found
    assert of == kind


def test_endless_loops_end_at_a_limit():
    program, _ = run("WHILE TRUE DO Incr reg1; ENDWHILE", step_limit=500)
    assert program.stopped.startswith("stopped after 500 statements")
    assert program.fault is None
    assert not program.is_complete
    move = "MoveAbsJ [[0,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]], v100, fine, tool0;"
    program, _ = run(f"WHILE TRUE DO Incr reg1; {move} ENDWHILE", moves=3)
    assert len(program.moves) == 3
    assert "stopped after 3 moves" in program.stopped
    assert program.is_complete


def test_signals_are_logged_and_inputs_have_values():
    body = 'SetDO grip, 1; WaitDI there, 1; WaitUntil there = 1; IF DInput(there) = 1 TPWrite "yes";'
    program, texts = run(body, inputs={"there": 1.0}, signal_delay=0.5)
    assert program.fault is None
    assert "SetDO grip (logged)" in texts
    assert "yes" in texts
    assert program.assumed == program.events == ()
    program, texts = run(body, signal_delay=0.5)
    assert [note.text for note in program.assumed] == ["WaitDI there (taken as answered)"]
    assert "yes" in texts
    assert [pause.seconds for pause in program.events] == [0.5]


def test_undo_handlers_run_from_the_inside_outwards_when_all_routines_are_left():
    before = 'PROC inner()\nExitCycle;\nUNDO\nTPWrite "inner";\nENDPROC'
    body = 'inner;\nTPWrite "not here";\nERROR\nTRYNEXT;\nUNDO\nTPWrite "outer";'
    program, texts = run(body, before)
    assert program.fault is None
    assert texts == ["inner", "outer"]
    assert written(body.replace("inner;", "GOTO end; end:"), before) == ["not here"]


def test_a_cross_connection_follows_after_its_delay_in_order():
    signals = Signals({})
    signals.connections["do1"] = [Connection("di1", 0.1), Connection("di2", 0.1, True), Connection("di3")]
    seen = []
    signals.on_change = lambda name, before, after: seen.append((name, after))
    signals.advance(1.0)
    signals.write("DO1", 1.0)
    signals.advance(1.099)
    assert seen == [("do1", 1.0), ("di3", 1.0)]
    signals.write("di2", 1.0)
    signals.advance(1.1)
    assert seen[3:] == [("di1", 1.0), ("di2", 0.0)]


MOVE = "MoveAbsJ [[0,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]], v100, fine, tool0;"


def test_programs_that_call_themselves_are_loops(monkeypatch):
    """Memory is their limit, not the stack of Python."""
    before = "PROC again() IF reg1 < 9 THEN TEST 1 CASE 1: main; ENDTEST ENDIF ENDPROC"
    program, texts = run(f"{MOVE} Incr reg2; again;", before, moves=1500)
    assert program.fault is None, program.fault
    assert program.is_complete
    assert len(program.moves) == 1500
    assert program.stopped.endswith("before line 4; 3001 calls within each other had not returned")
    assert "main calls itself: each call takes memory, a loop does not" in texts
    program, _ = run(f"{MOVE} SetDO do1, 1; again;", before)
    assert program.stopped == "line 3 repeats itself for ever: its moves until round 2 are judged"
    assert program.is_complete
    program, _ = run("reg1 := 1; again;", before)
    assert program.stopped.startswith("the program waits for what never comes in the loop of line 3")
    monkeypatch.setattr("twin.abb.rapid.program.DEEPEST", 250)
    message, _ = fault("TPWrite ValToStr(f(1));", "FUNC num f(num n) RETURN f(n + 1); ENDFUNC")
    assert message == "a.mod, line 2: f is call 251 within another, the limit is 250"


def test_calls_that_return_are_no_loop_though_they_begin_alike():
    before = f"PROC tree(num n) {MOVE} IF n > 0 THEN tree n - 1; tree n - 1; ENDIF ENDPROC "
    before += "FUNC num depth(num n) IF n = 0 RETURN 0; RETURN 1 + depth(n - 1); ENDFUNC"
    program, texts = run("tree 3; tree 3; TPWrite ValToStr(depth(3000));", before)
    assert (program.fault, program.stopped, len(program.moves)) == (None, "", 30)
    assert texts == ["3000"]
    program, texts = run(
        "sub; TPWrite ValToStr(reg2);", "PROC sub() Incr reg1; IF reg1 < 300 sub; EXIT; ENDPROC"
    )
    assert (program.stopped, program.is_complete) == ("301 calls within each other had not returned", True)


def test_tool0_and_others_are_persistents_that_cannot_change():
    before = """FUNC bool there(robtarget p, INOUT tooldata t, INOUT wobjdata w)
            RETURN IsPers(t) AND IsPers(w) AND t = tool0 AND w = wobj0;
        ENDFUNC
        PROC heavier(PERS loaddata one) one.mass := 5; ENDPROC
        PROC slower(PERS speeddata v) ENDPROC
        PROC other(VAR wobjdata w) ENDPROC
        CONST num fixed := 1; VAR robtarget p;"""
    assert written("TPWrite ValToStr(there(p, tool0, wobj0));", before) == ["TRUE"]
    assert "one is constant (tool0, wobj0, load0 cannot be changed)" in fault("heavier load0;", before)[0]
    assert "wobj0 is constant, and w may change it" in fault("other wobj0;", before)[0]
    assert "v100 is constant, and v may change it" in fault("slower v100;", before)[0]
    for body in ("Incr fixed;", 'TPReadNum fixed, "";', "WaitDI di1, 1\\TimeFlag:=fixed;"):
        assert "fixed is constant" in fault(body, before)[0]
    assert written("TPWrite ValToStr(load0.mass);", before) == ["0.001"]


def test_what_is_no_signal_is_named_and_how_signals_are_declared():
    data = "VAR intnum i; VAR bool flag; TRAP t ENDTRAP "
    for name, reason in {
        "nowhere{1}": "nothing declares nowhere: --io EIO.cfg or --inputs nowhere=1 does",
        "flag": "flag is data of the type bool", "main": "main is a routine",
    }.items():  # fmt: skip
        message, _ = fault(f"CONNECT i WITH t; ISignalDI {name}, 1, i;", data)
        assert message == f"a.mod, line 4: ISignalDI needs a signal as argument 1, and {reason}"
