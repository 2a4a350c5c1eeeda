"""Each instruction and function has an effect in `names.txt`, or is in a list of those that do nothing."""

import re
from pathlib import Path

import numpy as np
import pytest

import twin
from twin.abb.controller import instructions as live
from twin.abb.controller.egm_instructions import EgmInstructions
from twin.abb.rapid import interpret, parse
from twin.abb.rapid.functions import ASSUMED, FUNCTIONS
from twin.abb.rapid.instructions import INSTRUCTIONS, WITHOUT_EFFECT
from twin.abb.rapid.language import Source

ROBOT = twin.load("irb140").with_drives("rigid")
TESTS = Path(__file__).parents[3]
ROWS = [line for line in Path(__file__).with_name("names.txt").read_text().splitlines() if line.strip(" #")]
EFFECTS = [line for line in ROWS if " => " in line and line[0] != "#"]
BY_TESTS = [re.fullmatch(r"(@|@live) (\S+): (.*)", line).groups() for line in ROWS if line[0] == "@"]
EXT = "[9E9,9E9,9E9,9E9,9E9,9E9]"
DATA = f"""
    CONST robtarget to := [[450,100,647],[0,0,1,0],[0,0,0,0],{EXT}];
    CONST robtarget via := [[500,50,647],[0,0,1,0],[0,0,0,0],{EXT}];
    CONST robtarget turned := [[450,100,647],[0,0.7071068,0.7071068,0],[0,0,0,0],{EXT}];
    CONST robtarget local := [[79,-442,614],[0,0.7071068,0.7071068,0],[0,0,0,0],{EXT}];
    CONST jointtarget home := [[0,0,0,0,90,0],{EXT}]; CONST jointtarget bent := [[20,10,-10,15,40,-30],{EXT}];
    PERS tooldata grip := [TRUE,[[0,0,100],[1,0,0,0]],[1,[0,0,50],[1,0,0,0],0,0,0]];
    PERS wobjdata bench := [FALSE,TRUE,"",[[10,20,30],[0.7071068,0,0,0.7071068]],[[1,2,3],[1,0,0,0]]];
    PERS seamdata seam := [0]; PERS welddata weld := [0]; PERS beaddata bead := [0];
    PERS spotdata spot := [0]; PERS gundata gun := [0]; PERS nutdata nut := [0];
    VAR triggdata trigg; PERS num shared := 0;
    VAR num n; VAR num times; VAR dnum d := 1.234567; VAR dnum big := 4503599627370494;
    VAR bool b; VAR string s; VAR rawbytes raw;
    VAR pos v := [1,2,3]; VAR orient q := [0.8,0.2,0.4,0.4]; VAR pose f := [[10,20,30],[0.8,0.2,0.4,0.4]];
    VAR robtarget p; VAR jointtarget j; VAR clock watch; VAR iodev file; VAR dir folder; VAR intnum wake;
    VAR errnum booked := -1; VAR signaldi input; VAR num grid{{2,3}} := [[1,2,3],[4,5,6]];
    CONST string words{{2}} := ["a","b"]; CONST listitem items{{2}} := [["","a"],["","b"]];
    VAR robtarget at{{3}} := [[[100,0,0],[1,0,0,0],[0,0,0,0],{EXT}],
        [[100,200,0],[1,0,0,0],[0,0,0,0],{EXT}],[[50,60,0],[1,0,0,0],[0,0,0,0],{EXT}]];
    TRAP woken Incr times; TPWrite "woken "\\Num:=times; ENDTRAP
    PROC risky() IF n < 8 RAISE 7; ENDPROC
    PROC passed_on() RAISE 9; ERROR RaiseToUser\\Continue; ENDPROC
    PROC noted() TPWrite "noted"; ENDPROC
    PROC ready() MoveAbsJ home, v500, fine, tool0; ENDPROC
    PROC optional(\\num x) IF Present(x) THEN TPWrite ValToStr(x); ELSE TPWrite "absent"; ENDIF ENDPROC
"""
INPUTS = {
    "di_late": ((1.0, 1.0),), "gi_late": ((1.0, 3.0),), "ai_late": ((1.0, 5.0),), "di_on": 1.0,
    "di_off": 0.0, "ai_on": 2.5, "gi_on": 5.0,
}  # fmt: skip
ANSWERS = "entry?=4", "word?=yes", "dnum?=4294967297", "list?=2"
DATA_MODULE = parse(f"MODULE D\n{DATA}\nENDMODULE", "data.mod").modules


def run(body, robot=None):
    """Return the program of a `main` beside the data of the rows."""
    main = parse(f"MODULE M\nPROC main()\n{body}\nENDPROC\nENDMODULE", "a.mod").modules
    return interpret(Source(DATA_MODULE + main, ()), robot, inputs=INPUTS, operator=ANSWERS)


def shape_of(segment):
    """Return the shape of a path, and the flange at its end in [mm]."""
    T = twin.forward_kinematics(ROBOT, segment.q)
    places = 1e3 * T[:, :3, 3]
    shares = np.linspace(0, 1, len(segment.q))[:, None]
    if np.ptp(np.linalg.norm(places - [450, 50, places[0, 2]], axis=1)) < 1e-5:
        shape = "circle"
    elif np.linalg.matrix_rank(places - places[0], tol=1e-4) == 1:
        shape = "line"
    else:
        assert np.allclose(segment.q, segment.q[0] + shares * (segment.q[-1] - segment.q[0]), atol=1e-12)
        shape = "joint"
    return f"{shape} {','.join(f'{round(x):d}' for x in places[-1])}"


def outcome(program):
    """Return moves and waits, texts, and why the program ended; notes if there is nothing else."""
    moves = iter(program.segments)
    did = [
        shape_of(next(moves)) if hasattr(one, "tool") else f"{one.seconds:g} s"
        for one in program.events
        if getattr(one, "routine", "") != "ready" or not next(moves)
    ]
    texts = [note.text for note in program.notes]
    did += [text.removeprefix("TPWrite: ") for text in texts if text.startswith("TPWrite: ")]
    did += [re.sub(r"a\.mod, line \d+: ", "", str(end)) for end in (program.fault, program.stopped) if end]
    return did or [text.strip() for text in texts]


@pytest.mark.parametrize("row", EFFECTS, ids=lambda row: row.partition(" => ")[0][:60])
def test_effects(row):
    call, _, expected = row.partition(" => ")
    name, colon, statements = call.partition(": ")
    if not re.fullmatch(r"\w+", name) or not colon:
        statements = f"TPWrite ValToStr({call});"
    assert outcome(run(statements, robot=ROBOT)) == expected.split(" | ")


def test_settings_of_a_move():
    """ABB: AccSet takes values below 20 % as 20 %, VelSet scales both speeds, and `\\Inpos` is a stop."""
    move = run("AccSet 10, 100; VelSet 50, 100; MoveJ to, v500, z10\\Inpos:=inpos50, tool0;").moves[0]
    assert (move.settings.acceleration, move.speed, move.stops) == (0.2, (100.0, 250.0), True)


def test_each_name_has_a_row_or_is_in_a_list():
    with_rows = [re.match(r"\w+", row)[0] for row in EFFECTS]
    with_rows += " ".join(names for kind, _, names in BY_TESTS if kind == "@").split()
    refused = [name for name in INSTRUCTIONS if " is refused: " in str(run(f"{name};").fault)]
    listed = [*WITHOUT_EFFECT, *ASSUMED, *refused]
    names = {*INSTRUCTIONS, *FUNCTIONS}
    assert names - set(with_rows) - set(listed) == set(), "names without a row in names.txt"
    assert set(with_rows) - names == set(), "rows of names that are in no table"
    assert set(with_rows) & set(listed) == set()
    egm = EgmInstructions(None)  # type: ignore[arg-type]
    on_live = {*live.INSTRUCTIONS, *live.FUNCTIONS, *egm.instructions(), *egm.functions()}
    rows = " ".join(names for kind, _, names in BY_TESTS if kind == "@live").split()
    assert {name.lower() for name in rows} == {name.lower() for name in on_live}
    assert [name for name in refused if not name.startswith(("Socket", "RMQ", "EGM"))] == []
    for _, file, names in BY_TESTS:
        words = set(re.findall(r"\w+", (TESTS / file).read_text()))
        assert [name for name in names.split() if name not in words] == [], file


def test_what_does_nothing_is_noted_where_it_stands_and_in_the_guide():
    for name, reason in WITHOUT_EFFECT.items():
        program = run(f"{name};\n{name};")
        assert (program.events, program.fault, program.is_complete) == ((), None, True), name
        assert [(note.line, note.text) for note in program.notes] == [
            (3, f"{name} ({reason})"), (4, f"{name} ({reason})"),
        ]  # fmt: skip
    for name in ASSUMED:
        program = run(f"TPWrite ValToStr({name}());")
        assert f"{name} returns " in str(program.assumed), name
    guide = (TESTS.parent / "docs/guides/rapid.md").read_text()
    listed = guide.partition("## Accepted, without an effect")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == {*WITHOUT_EFFECT, *ASSUMED}
    assert all(reason in listed for reason in WITHOUT_EFFECT.values())
