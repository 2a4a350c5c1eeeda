"""Pendant in a browser: the pointer, dialogs, inputs and jogging, as a person sees and uses them."""

import os
import time
from functools import partial

import numpy as np
import pytest

from scenarios.abb.background import serving
from scenarios.abb.pendant import Pendant
from scenarios.abb.pendant_page import listing
from tests.support.browser import browser

pytestmark = [pytest.mark.slow("serves a station"), pytest.mark.browser]

STATION = """
robot = "irb140"
start = "manual"
[tasks.T_ROB1]
modules = ["cell.mod"]
[signals]
DI_part = { type = "DI" }
ai_force = { type = "AI" }
Do_Grip = { type = "DO" }
"""
CELL = """MODULE Pick
CONST jointtarget a := [[60,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
CONST robtarget here := [[0,0,0],[1,0,0,0],[0,0,0,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
VAR num key;
PROC main()
TPReadFK key, "Next <part>?", "Yes", "No", stEmpty, stEmpty, stEmpty;
WaitDI di_part, 1;
SetDO do_grip, 1;
MoveAbsJ a, v100, fine, tool0;
UINumEntry key;
TPWrite "key " \\Num:=key;
WaitTime 100;
ENDPROC
ENDMODULE
"""
BUTTON = (
    "[...document.querySelectorAll('button,[role=tab],[role=option]')]"
    ".filter(e => e.innerText.trim() == '{}' && e.offsetParent)[{}]"
)
FIELD = (
    "(e => {{ while (e && !e.querySelector('input')) e = e.parentElement;"
    " return e && e.querySelector('input') }})"
    "([...document.querySelectorAll('label')].find(e => e.innerText.trim() == '{}' && e.offsetParent))"
)
TEXT = "document.body.innerText.includes({!r})"


@pytest.fixture
def running(tmp_path):
    (tmp_path / "station.toml").write_text(STATION)
    (tmp_path / "cell.mod").write_text(
        CELL.replace("UINumEntry key", 'key := UINumEntry(\\Header:="How many?")')
    )
    with serving(tmp_path / "station.toml") as found:
        yield found


def press(page, text, which=0):
    page.click(BUTTON.format(text, which))


def test_a_person_runs_a_program_in_two_pages(running, tmp_path):
    controller, held, until = running.controller, [], partial(running.wait_until, timeout=60.0)
    running.stop()
    running.to_main()
    pendant = Pendant(running, 0, lambda: held)
    assert os.getsid(pendant._process.pid) != os.getsid(0)  # an interrupt at the terminal is not for the page
    try:
        with browser(tmp_path / "profile") as open_page:
            page, second = open_page(pendant.url), open_page(pendant.url)
            page.wait_for("document.body && " + TEXT.format("stopped"))
            press(page, "start")
            for one in (page, second):
                one.wait_for(TEXT.format("T_ROB1 asks"))
            press(second, "Yes")
            page.wait_for("!" + TEXT.format("T_ROB1 asks"))
            page.wait_for(TEXT.format("➤    7"))
            press(page, "signals")
            page.click(FIELD.format("DI_part"))
            until(lambda: running.controller.signals.values.get("do_grip") == 1.0)
            second.wait_for(TEXT.format("➤●   9"))
            press(page, "stop")
            until(lambda: not controller.execution.running and controller.rests)
            second.wait_for(TEXT.format("stopped"))
            second.close()
            assert 0.0 < np.degrees(controller.arm.q[0]) < 60.0
            press(page, "start")
            page.wait_for(TEXT.format("T_ROB1 asks"))
            page.click(FIELD.format("answer"))
            page.call("Input.insertText", text="3")
            time.sleep(0.5)  # the page sends a text when nobody types any more
            press(page, "OK")
            until(lambda: any("key 3" in line.sentence for line in running.lines))
            press(page, "jog")
            press(page, "+")
            page.wait_for(TEXT.format("in manual mode with motors on"))
            page.click(FIELD.format("mode"))
            press(page, "manual, 250 mm/s")
            until(lambda: controller.execution.mode == "MANR" and controller.rests)
            press(page, "+", 2)
            until(lambda: controller.rests and abs(controller.arm.q[2] - np.radians(5.0)) < 1e-6)
            page.click(FIELD.format("target"))
            press(page, "here")
            press(page, "modify position")
            page.wait_for(TEXT.format("CONST robtarget here := [["))
            held.append("motion")
            page.wait_for(TEXT.format("mastership of a client"))
            press(page, "−", 1)
            page.wait_for(TEXT.format("has the mastership of motion"))
            assert controller.arm.q[1] == pytest.approx(0.0, abs=1e-9)
            assert {f"{address.split('/')[2]}" for address in page.requests()} == {pendant.url.split("/")[2]}
            assert not page.complaints()
    finally:
        pendant.close()
    assert controller.faults == []


def test_a_listing_marks_the_pointer_and_the_move_and_escapes_the_program():
    shown = listing(["MODULE <b>", "MoveJ a;", "x := 1;"], 3, 2)
    assert "➤    3  x := 1;" in shown
    assert " ●   2  MoveJ a;" in shown
    assert "MODULE &lt;b&gt;" in shown
