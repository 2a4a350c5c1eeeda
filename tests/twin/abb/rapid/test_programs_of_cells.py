"""Programs as people write them: inputs, pallets, drawings, menus, error recovery and interrupts."""

# ruff: noqa: E501 (programs in RAPID)
import pytest

import twin
from tests.support import rapid_programs
from twin.abb.rapid import check, parse
from twin.abb.rapid.functions import FUNCTIONS
from twin.abb.rapid.instructions import INSTRUCTIONS
from twin.abb.rapid.language import Source
from twin.abb.rapid.programs import interpret
from twin.abb.rapid.signals import signals_of

EXT = "[9E9,9E9,9E9,9E9,9E9,9E9]"
CELL = f"""
    CONST jointtarget home := [[0,0,0,0,30,0],{EXT}];
    CONST robtarget place := [[450,0,400],[0,0,1,0],[0,0,0,0],{EXT}];
    PERS tooldata grip := [TRUE,[[0,0,100],[1,0,0,0]],[1,[0,0,50],[1,0,0,0],0,0,0]];
    VAR num n; VAR num i; VAR clock watch; VAR intnum first; VAR intnum second; VAR rawbytes raw; VAR iodev log;
    VAR bool late; VAR robtarget p; VAR string line;
    PERS num shared := 0;
"""
GO_HOME = "MoveAbsJ home, v500, fine, tool0;"
ROBOT = twin.load("irb140").with_drives("rigid")


def ran(body, before="", robot=None, **options):
    """Return the program of a `main` in the cell, and what it writes on the pendant."""
    program = rapid_programs.program(body, robot, CELL.replace("\n", " ") + before, **options)
    texts = [note.text for note in program.notes if note.text.startswith("TPWrite: ")]
    return program, [text.removeprefix("TPWrite: ") for text in texts]


PROGRAMS = {
    # name: (declarations and routines, statements of main, number of moves, texts)
    "a switch in a message": ("", 'ErrWrite \\W, "Gripper empty", "Check the feeder";', 0, []),
    "tool0 for a persistent parameter": (
        "PROC go(robtarget to, PERS tooldata t, PERS wobjdata w) MoveJ to, v500, fine, t\\WObj:=w; ENDPROC",
        "ConfJ\\Off; go place, tool0, wobj0;", 1, [],
    ),
    "outputs are remembered": (
        "", 'SetDO done, 1; IF DOutput(done)=1 TPWrite "a"; IF done=high TPWrite "b"; Reset done; '
        'IF done=0 TPWrite "c"; InvertDO done; TPWrite ""\\Num:=DOutput(done);', 0, ["a", "b", "c", "1"],
    ),
    "a pulse comes back": ("", 'PulseDO\\PLength:=0.2, done; TPWrite ""\\Num:=DOutput(done);', 0, ["0"]),
    "a signal is a parameter": (
        "PROC open(VAR signaldo valve) SetDO valve, 1; ENDPROC",
        'open do_valve; TPWrite ""\\Num:=DOutput(do_valve);', 0, ["1"],
    ),
    "a signal has a second name": (
        "VAR signaldo valve;", 'AliasIO "do_valve", valve; SetDO valve, 1; TPWrite ""\\Num:=DOutput(do_valve);',
        0, ["1"],
    ),
    "pick and place": (
        "PROC pick() MoveL Offs(place,0,0,50), v500, z10, grip; MoveL place, v100, fine, grip; Set vacuum; "
        "WaitDI part_held, 1; MoveL Offs(place,0,0,50), v500, fine, grip; ENDPROC",
        f'ConfL\\Off; {GO_HOME} WHILE part_there=0 DO WaitTime 0.1; ENDWHILE pick; '
        'IF part_held=1 TPWrite "held";', 4, ["held"],
    ),
    "a polling loop gets its signal": (
        "", f'WHILE DInput(ready)=0 DO WaitTime 0.1; ENDWHILE {GO_HOME} TPWrite "ready";', 1, ["ready"],
    ),
    "a pallet of an array and Offs": (
        "CONST num cols := 3; CONST num rows := 2; VAR num counts{3,2};",
        "ConfL\\Off; FOR c FROM 1 TO cols DO FOR r FROM 1 TO rows DO MoveL Offs(place,40*c,40*r,0), v500, fine,"
        ' grip; counts{c,r} := 10*c+r; ENDFOR ENDFOR TPWrite ""\\Num:=counts{3,2};', 6, ["32"],
    ),
    "a pallet with its own frame": (
        "PERS wobjdata pallet := [FALSE,TRUE,\"\",[[400,-50,300],[1,0,0,0]],[[0,0,0],[1,0,0,0]]];",
        "ConfL\\Off; p := [[0,0,50],[0,0,1,0],[0,0,0,0],[9E9,9E9,9E9,9E9,9E9,9E9]]; MoveL p, v500, fine, "
        "tool0\\WObj:=pallet; pallet.oframe.trans.z := -30; MoveL p, v500, fine, tool0\\WObj:=pallet;", 2, [],
    ),
    "a drawing of 500 lines": (
        "", f"ConfL\\Off; {GO_HOME} FOR k FROM 0 TO 499 DO MoveL Offs(place,60*Cos(k*3.6),60*Sin(k*3.6),0), "
        "v200, z1, tool0; ENDFOR", 501, [],
    ),
    "a menu with keys": (
        "", 'TPReadFK n, "Which part?", "A", "B", stEmpty, stEmpty, stEmpty; TEST n CASE 1: TPWrite "A"; '
        'DEFAULT: TPWrite "B"; ENDTEST', 0, ["A"],
    ),
    "a menu that asks until the answer is valid": (
        "", 'WHILE n < 2 DO TPReadNum n, "Row, 2 to 5?"; ENDWHILE TPWrite ""\\Num:=n;', 0, ["2"],
    ),
    "message boxes": (
        "", 'IF UIMessageBox(\\Header:="x"\\Buttons:=btnYesNo)=resYes TPWrite "yes"; n := UINumEntry(\\Header:='
        '"n"\\InitValue:=4\\MinValue:=1); UIMsgBox "x", "y"\\Buttons:=btnOK\\Result:=i; TPWrite ""\\Num:=n+i;',
        0, ["yes", "5"],
    ),
    "division by zero and its handler": (
        "PROC half() n := 1/n; TPWrite \"after\"; ERROR IF ERRNO=ERR_DIVZERO THEN n := 1; TRYNEXT; ENDIF ENDPROC",
        "half;", 0, ["after"],
    ),
    "an index and its handler": (
        "VAR num list{2}; PROC out() list{3} := 1; ERROR TPWrite \"out\"; RETURN; ENDPROC", "out;", 0, ["out"],
    ),
    "a search without contact": (
        "PROC find() SearchL\\Stop, di_touch, p, place, v50, tool0; TPWrite \"found\"; ERROR "
        "IF ERRNO=ERR_WHLSEARCH THEN TPWrite \"nothing\"; TRYNEXT; ENDIF ENDPROC", "ConfL\\Off; find;", 1,
        ["nothing", "found"],
    ),
    "a target out of reach and its handler": (
        "PROC ask() p := place; p.trans.x := 5000; home2 := CalcJointT(p, tool0); ERROR IF ERRNO=ERR_ROBLIMIT "
        "OR ERRNO=ERR_OUTSIDE_REACH THEN TPWrite \"far\"; TRYNEXT; ENDIF ENDPROC VAR jointtarget home2;",
        "ask;", 0, ["far"],
    ),
    "a timer interrupts": (
        "TRAP tick Incr n; ENDTRAP",
        "CONNECT first WITH tick; ITimer 0.5, first; WaitTime 1.2; TPWrite \"\"\\Num:=n;", 0, ["2"],
    ),
    "an output interrupts": (
        "TRAP seen TPWrite \"seen\"; ENDTRAP",
        "CONNECT first WITH seen; ISignalDO\\Single, do1, 1, first; Set do1; Reset do1; Set do1; n := 1;", 0,
        ["seen"],
    ),
    "an output interrupts at its edge": (
        "TRAP seen Incr n; ENDTRAP",
        'CONNECT first WITH seen; ISignalDO do1, 1, first; Set do1; Set do1; Reset do1; Set do1; i := 1; TPWrite ""\\Num:=n;',
        0,
        ["2"],
    ),
    "a persistent interrupts, and sleeps": (
        "TRAP seen Incr n; ENDTRAP",
        "CONNECT first WITH seen; IPers shared, first; shared := shared+1; ISleep first; shared := shared+1; "
        "IWatch first; IDisable; shared := shared+1; TPWrite \"\"\\Num:=n; IEnable; i := 0; "
        "TPWrite \"\"\\Num:=n; IDelete first; shared := shared+1; TPWrite \"\"\\Num:=n;", 0, ["1", "2"],
    ),
    "the path is stored in a trap": (
        "TRAP aside StopMove; StorePath; p := CRobT(); MoveAbsJ home, v500, fine, tool0; RestoPath; StartMove; "
        "ENDTRAP",
        f"CONNECT first WITH aside; ISignalDO do1, 1, first; {GO_HOME} Set do1; {GO_HOME}", 3, [],
    ),
    "the clock of the program": (
        "", f'ClkReset watch; ClkStart watch; WHILE ClkRead(watch) < 2 DO WaitTime 0.1; ENDWHILE {GO_HOME} '
        'ClkStop watch; TPWrite NumToStr(ClkRead(watch),1);', 1, ["2.1"],
    ),
    "bytes and bits": (
        "", 'TPWrite ""\\Num:=StrToByte("10"\\Hex); TPWrite ByteToStr(122\\Bin)+ByteToStr(122\\Okt); '
        'TPWrite ""\\Num:=BitAnd(12,10)+BitLSh(1,4); PackRawBytes 1.5, raw, 1\\Float4; PackRawBytes 258, raw, '
        'RawBytesLen(raw)+1\\IntX:=UINT; UnpackRawBytes raw, 1, n\\Float4; UnpackRawBytes raw, 5, i\\IntX:=UINT; '
        'TPWrite ""\\Num:=n+i;', 0, ["16", "01111010172", "24", "259.5"],
    ),
    "strings": (
        "", 'TPWrite ""\\Num:=StrLen("a\\0D")+StrLen("a\\\\b"); TPWrite StrMap("abc",STR_LOWER,STR_UPPER); '
        'IF StrMemb("a1",2,STR_DIGIT) TPWrite StrFormat("{1}/{2}"\\Arg1:="a"\\Arg2:="b"); '
        'IF StrOrder("FIRST","SECOND",STR_UPPER) TPWrite ValToStr(9E9);', 0, ["5", "ABC", "a/b", "9E+09"],
    ),
    "a file that is written": (
        "", 'Open "HOME:"\\File:="log.txt", log\\Write; Write log, "part "\\Num:=3; Close log; '
        'Open "HOME:/log.txt", log\\Read; line := ReadStr(log); TPWrite line; '
        'IF ReadStr(log)=EOF_TEXT TPWrite "end"; Close log;', 0, ["part 3", "end"],
    ),
    "names of required arguments": (
        "PROC go(num x, num y) TPWrite \"\"\\Num:=x-y; ENDPROC",
        "ConfJ\\Off; MoveJ ToPoint:=place, Speed:=v500, Zone:=fine, Tool:=tool0; go y:=1, x:=5;", 1, ["4"],
    ),
    "an unfinished routine": ("PROC later() <SMT> ENDPROC", 'TPWrite "x";', 0, ["x"]),
    "options of the controller": (
        "PERS seamdata seam := [0.1,0.2]; PERS welddata weld := [10,0]; CONST pm_info info := [1,\"a\"];",
        f"ConfL\\Off; {GO_HOME} ArcLStart place, v500, seam, weld, fine, grip; ArcLEnd Offs(place,0,50,0), v500, "
        "seam, weld, fine, grip; CX_Trigger info; WZBoxDef\\Inside, shape, place.trans, place.trans;", 3, [],
    ),
    "a program that is displaced": (
        "", "ConfL\\Off; PDispSet [[0,50,0],[1,0,0,0]]; MoveL place, v500, fine, tool0; PDispOff; "
        "p := CRobT(); TPWrite \"\"\\Num:=p.trans.y;", 1, ["50"],
    ),
    "MoveLDO and MoveLSync": (
        "PROC open() TPWrite \"open\"; ENDPROC",
        "ConfL\\Off; MoveLDO place, v500, fine, tool0, do1, 1; TPWrite \"\"\\Num:=do1; MoveLSync Offs(place,0,9,0),"
        ' v500, z1, tool0, "open";', 2, ["1", "open"],
    ),
    "procedures by their numbers": (
        "PROC part2() TPWrite \"two\"; ENDPROC", 'CallByVar "part", 2; %"part2"%;', 0, ["two"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_to_their_ends(name):
    before, body, moves, texts = PROGRAMS[name]
    before = before + ' CONST string EOF_TEXT := "EOF"; VAR shapedata shape;'
    program, written = ran(body, before.replace("\n", " "), ROBOT)
    assert (program.fault, program.is_complete) == (None, True), program.fault or program.stopped
    assert (len(program.moves), written) == (moves, texts)
    _, fault = check(program, ROBOT)
    assert fault is None, fault


@pytest.mark.parametrize("name", ["pick and place", "a drawing of 500 lines", "options of the controller"])
def test_programs_run_without_kinematics(name):
    before, body, moves, texts = PROGRAMS[name]
    program, written = ran(body.replace("tool0", "unknown_tool"), before + " VAR shapedata shape;")
    assert (program.fault, len(program.moves), written) == (None, moves, texts)
    assert program.segments == ()
    assert ("unknown_tool is not declared" in str(program.assumed)) == ("tool0" in body)


# ---------------------------------------------------------------------------------------------- given values


def test_inputs_have_values_from_a_time_on():
    inputs = {"di1": ((0.0, 0.0), (2.5, 1.0)), "shared": 7.0}
    body = "WaitDI di1, 1; TPWrite NumToStr(ClkRead(watch), 2); TPWrite ValToStr(shared);"
    program, texts = ran(f"ClkStart watch; {body}", inputs=inputs)
    assert texts == ["2.50", "7"]
    assert program.assumed == ()
    program, _ = ran("WaitDI di1, 1;", inputs={"di1": 0.0})
    assert program.stopped == "WaitDI in line 4 waits for ever: --inputs gives di1 another value"
    assert not program.is_complete
    program, texts = ran(
        'WaitDI di1, 1 \\MaxTime:=3 \\TimeFlag:=late; IF late TPWrite "late";', inputs={"di1": 0}
    )
    assert texts == ["late"]
    assert program.events[0].seconds == 3.0
    _, texts = ran(
        'wait; TPWrite "on";',
        "PROC wait() WaitDI di1,1\\MaxTime:=1; ERROR IF ERRNO=ERR_WAIT_MAXTIME TRYNEXT; ENDPROC",
        inputs={"di1": 0},
    )
    assert texts == ["on"]


def test_signals_without_a_value_are_named_once():
    program, texts = ran('IF di1=1 AND DInput(di2)=0 TPWrite "a"; IF gi1=0 TPWrite "b";')
    assert texts == ["b"]
    assert [note.text for note in program.assumed] == [
        "signals of the cell, taken as 0: di1, gi1 (--inputs di1=1)"
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("IF wattch=1 n := 1;", "wattch is not declared, did you mean 'watch'? Or else add the module"),
        ("IF di1=1 n := 2*di1;", "di1 is not declared: add the module that declares it, or --inputs"),
        ("Pik;", "there is no procedure or instruction Pik, did you mean 'pick'?"),
        ("Unknown place;", "there is no procedure or instruction Unknown, and it takes a target: add the module"),
        ("n := Unknown(1);", "there is no function Unknown: add the module that declares it"),
        ("MoveL place, v500, fine, other;", "other is not declared"),
        ("MoveJ place, v500, Tool:=tool0, Zon:=fine;", "MoveJ has no argument zon, it has ToPoint, Speed, Zone, Tool"),
        ("<SMT>", "<SMT> stands for a statement that is not written yet"),
        ("SocketConnect s, \"1.1.1.1\", 1;", "it needs a live controller: `irb-twin abb serve` runs"),
        ("ITimer 1, first;", "ITimer: first is not connected with a trap (CONNECT)"),
        ("MoveAbsJ home, v500, fine, light;", "MoveAbsJ: a load of -1 kg, expected at least 0"),
        ("again;", "RETRY of line 2 for the 5th time: a controller stops after 4 (No Of Retry)"),
        ('line := "1234567890123456789012345678901234567890"; line := line+line+line;', "a string of 120 characters"),
    ],
)  # fmt: skip
def test_stops_name_what_is_missing(body, message):
    before = "VAR socketdev s; PROC pick() ENDPROC PROC again() RAISE 5; ERROR RETRY; ENDPROC "
    before += "PERS tooldata light := [TRUE,[[0,0,1],[1,0,0,0]],[-1,[0,0,0],[1,0,0,0],0,0,0]];"
    program, _ = ran(body, before, ROBOT)
    assert program.fault is not None
    assert message in str(program.fault)
    assert program.fault.line in (3, 4)


def test_a_name_that_two_programs_declare_has_both_places():
    """As of a folder with several programs, each with its own main."""
    texts = {name: f"MODULE {name}\nPROC main()\nENDPROC\nENDMODULE" for name in ("one", "two")}
    modules = [parse(text, f"{name}.mod").modules[0] for name, text in texts.items()]
    fault = interpret(Source(tuple(modules), ())).fault
    assert str(fault) == "two.mod, line 2: main is declared twice, also in one.mod, line 2"


def test_signals_of_a_controller_have_types():
    kinds = {"do_grip": "DO", "di_start": "DI"}
    assert ran("Set do_grip; WaitDI di_start, 1; IF di_start=1 n := 1;", signals=kinds)[0].fault is None
    fault = ran("SetDO di_start, 1;", signals=kinds)[0].fault
    assert "di_start is a signal of type DI, SetDO needs DO" in str(fault)
    assert "dostart is not declared" in str(ran("IF dostart=1 n := 1;", signals={"dostartt": "DO"})[0].fault)


def test_signals_are_found_in_a_deep_program():
    deep = "IF n=5 THEN " * 1500 + "WaitDI di_part, 1;" + "ENDIF " * 1500
    source = parse(f"MODULE M\nVAR num n;\nPROC main()\n{deep}\nENDPROC\nENDMODULE", "m.mod")
    assert signals_of(source.modules) == {"di_part": "di_part"}


def test_the_operator_answers_in_order_or_by_the_text():
    body = (
        'TPReadFK n, "Which part?", "A", "B", "", "", ""; TPReadNum i, "How many?"; TPWrite ""\\Num:=10*n+i;'
    )
    assert ran(body, operator=["2", "5"])[1] == ["25"]
    assert ran(body, operator=["many=7", "b"])[1] == ["27"]
    program, texts = ran(body)
    assert texts == ["10"]
    assert program.assumed[0].text == 'TPReadFK: the operator answers 1 ("A") to "Which part?" (--operator)'
    program, _ = ran(f"WHILE TRUE DO {body.partition('TPWrite')[0]} ENDWHILE")
    assert "the program waits in the menu of line 4: --operator" in program.stopped
    assert not program.is_complete
    assert "expected a number from the operator, got 'x'" in str(ran(body, operator=["x"])[0].fault)


def test_a_trap_runs_once_after_its_input_and_what_never_comes_is_listed():
    before = 'TRAP stop TPWrite "stopped"; StopMove; ENDTRAP'
    body = f"CONNECT first WITH stop; ISignalDI di_stop, 1, first; {GO_HOME}"
    program, texts = ran(body, before, ROBOT)
    assert texts == []
    assert program.notes[-1].text == "never fired: di_stop"
    program, texts = ran(f"{body} n := 1;", before, ROBOT, inputs={"di_stop": ((0.05, 1.0),)})
    assert texts == ["stopped"]
    assert program.is_complete
    program, _ = ran(f"{body} {GO_HOME}", before, ROBOT, inputs={"di_stop": ((0.05, 1.0),)})
    assert program.stopped == "StopMove in line 2 stopped the arm, and no StartMove comes before line 4"


def test_endless_loops_are_distinguished():
    program, _ = ran(f"WHILE TRUE DO {GO_HOME} SetDO done, 1; ENDWHILE", robot=ROBOT)
    assert program.stopped == "line 4 repeats itself for ever: its moves until round 3 are judged"
    assert program.is_complete
    program, _ = ran("WHILE TRUE DO n := 1; ENDWHILE")
    assert "waits for what never comes in the loop of line 4" in program.stopped
    assert not program.is_complete
    program, texts = ran('WHILE TRUE DO IF go=1 TPWrite "go"; IF go=1 EXIT; ENDWHILE')
    assert texts == ["go"]
    assert program.assumed[-1].text.startswith("go becomes 1, because the loop waits")
    program, _ = ran(
        f"WHILE shared=0 DO {GO_HOME} WaitTime 1; ENDWHILE", inputs={"shared": ((3.0, 1.0),)}, robot=ROBOT
    )
    assert program.is_complete
    assert len(program.moves) == 3


def test_the_first_linear_move_begins_at_its_target():
    program, _ = ran("ConfL\\Off; MoveL place, v500, fine, tool0; MoveL Offs(place,0,0,-50), v100, fine, tool0;", "",
                     ROBOT)  # fmt: skip
    plan, fault = check(program, ROBOT)
    assert fault is None
    assert [round(one.length, 6) for one in plan.moves] == [0, 50]
    assert "MoveL is the first move: the arm begins at its target, at [" in program.assumed[0].text
    named = interpret(rapid_programs.module("MoveL place, v500, fine, tool0;", CELL.replace("\n", " ")), ROBOT,
                      start=[0, 0, 0, 0, 0.5, 0])  # fmt: skip
    assert named.assumed == ()


def test_corners_and_loads_that_a_controller_minds_are_remarks():
    body = f"ConfJ\\Off; ConfL\\Off; {GO_HOME} MoveJ place, v500, z50, tool0; WaitDI di1, 1; "
    body += "MoveL Offs(place,0,0,0.5), v500, z50, tool0; MoveL Offs(place,0,0,50), v500, fine, heavy;"
    heavy = "PERS tooldata heavy := [TRUE,[[0,0,1],[1,0,0,0]],[50,[0,0,1],[1,0,0,0],0,0,0]];"
    program, _ = ran(body, heavy, ROBOT)
    texts = [note.text for note in program.notes]
    assert "corner path failure, executed as fine: WaitDI in line 4 follows" in texts
    assert "MoveL of 0.5 mm: corner path failure, executed as fine" in texts
    assert "50 kg on irb140, which is rated for 6 kg" in texts
    assert [move.stops for move in program.moves] == [True, True, False, True]
    assert [segment.move.stops for segment in program.segments] == [True, True, True, True]
    assert len(check(program, ROBOT)[0].moves) == 4


def test_a_quaternion_that_is_nearly_of_length_one_is_normalised():
    program, _ = ran("p := place; p.rot := [0,0,0.998,0]; ConfL\\Off; MoveL p, v500, fine, tool0;", "", ROBOT)
    assert program.fault is None
    assert "MoveL: the quaternion has length 0.998, and is normalised" in [
        note.text for note in program.notes
    ]
    program, _ = ran("p := place; p.rot := [0,0,0.8,0]; MoveL p, v500, fine, tool0;", "", ROBOT)
    assert "has length 0.8, expected 1 within 0.1" in str(program.fault)


def test_encodings(tmp_path):
    file = tmp_path / "a.mod"
    for text, encoding in (
        ("VAR num höhe := 1;", "latin-1"), ("! 机器人回原点程序", "gbk"), ("VAR num 高 := 1;", "utf-8"),
        ("! \x1a", "utf-16"), ("VAR num é := 1;", "utf-8-sig"),
    ):  # fmt: skip
        file.write_bytes(f"MODULE M\r\n{text}\r\nPROC main()\r\nENDPROC\r\nENDMODULE\r\n".encode(encoding))
        assert twin.rapid.language.read_text(file).splitlines()[1] == text
        assert interpret(twin.rapid.read(file)).fault is None


def test_an_endless_counter_ends_within_seconds():
    """Notes of a line that counts are few, and finding one among them takes no longer with their number."""
    program = interpret(
        parse('MODULE M\nVAR num n;\nPROC main()\nWHILE TRUE DO\nIncr n;\nTPWrite ""\\Num:=n;\nENDWHILE\nENDPROC\nENDMODULE'),
        step_limit=20_000,
    )  # fmt: skip
    assert program.stopped.startswith("stopped after 20000 statements")
    assert len(program.notes) == 21


def test_raw_bytes_in_both_orders():
    body = "PackRawBytes 258, raw, 1\\IntX:=UINT; UnpackRawBytes\\Network, raw, 1, n\\IntX:=UINT; "
    body += "PackRawBytes\\Network, 2.5, raw, 3\\Float4; UnpackRawBytes\\Network, raw, 3, i\\Float4; "
    body += 'CopyRawBytes raw, 1, copy, 3\\NoOfBytes:=2; PackRawBytes "ab", copy, 5\\ASCII; '
    body += "UnpackRawBytes copy, 5, line\\ASCII:=2; TPWrite line+NumToStr(n,0)+NumToStr(i,1); "
    body += 'ClearRawBytes copy\\FromIndex:=4; TPWrite ""\\Num:=RawBytesLen(copy);'
    _, texts = ran(body, "VAR rawbytes copy;")
    assert texts == ["ab5132.5", "3"]


@pytest.mark.parametrize("arguments", ["", " n, n, n, n"])
def test_whatever_the_arguments_are_there_is_a_sentence(arguments):
    """Every instruction and function, with missing arguments and those of other types."""
    for name in INSTRUCTIONS:
        ran(f"{name}{arguments};", step_limit=100)
    for name in FUNCTIONS:
        ran(f"n := {name}({arguments});", step_limit=100)
