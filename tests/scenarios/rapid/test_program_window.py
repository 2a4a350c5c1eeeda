"""A program in the window: the running line is shown, and a load that changes does not change the motion."""

import pytest

from tests.support.rapid_programs import PICK
from tests.support.window_process import passes


@pytest.mark.display
def test_program_in_the_window_moves_as_without_one_and_shows_its_lines(display, tmp_path):
    """It takes 7 s of processor time: pictures of five moves are drawn without a graphics card."""
    path = tmp_path / "pick.mod"
    path.write_text(PICK.replace("there,0,40", "there,0,10"))
    shown = passes(
        f"""
        from scenarios import Setup
        from scenarios.rapid.program import RapidProgram
        from twin.engine.window.bench import Bench
        seen, write_line = [], Bench.write_line
        def written(bench, name, text, *more):
            if name == "program":
                seen.append(text)
            write_line(bench, name, text, *more)
        Bench.write_line = written
        program = RapidProgram(program={str(path)!r})
        logs = [program.run(Setup(gui=gui, close_window=True)).log for gui in (True, False)]
        print("same:", logs[0].identical(logs[1]))
        print(*seen, sep="\\n")
        """,
        display,
    )
    assert "same: True" in shown
    lines = [line for line in shown.splitlines() if line.startswith("pick.mod")]
    assert lines[0] == "pick.mod line 10: MoveAbsJ a, v1000, fine, grip;"
    assert [line.split(":")[0] for line in lines] == [
        f"pick.mod line {number}" for number in (10, 18, 19, 21, 14, 15)
    ]
