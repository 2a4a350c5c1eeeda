"""Page of a program: its text beside the replay, its lines in the curves, its path by speed."""

import numpy as np
import pytest

from scenarios.report.page import write_page
from scenarios.report.page_program import MOST_MARKS, line_numbers, listing
from scenarios.report.results import Results
from scenarios.running import registry
from scenarios.running.runs import run_one
from tests.support.browser import browser
from tests.support.rapid_programs import PICK
from twin.logs.views.scene import NEAR, _colours_of_speed

EVIL = 'TPWrite "</pre><script>document.title = 1</script>";'


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "pick.mod"
    path.write_text(PICK.replace("SetDO close, 1;", EVIL))
    scenario = registry.find(str(path))
    return run_one(scenario, scenario.Config())


def test_listing_has_every_line_and_the_times_of_the_executed_ones(run):
    found = listing(run.log)
    assert [number for _, number, _ in found.lines] == list(range(24))
    assert found.lines[0] == (0, 0, "pick.mod")
    assert [line for _, _, line in found.marks] == [10, 18, 19, 21, 14, 15]
    times = [t for t, _, _ in found.marks]
    assert times[1] == pytest.approx(run.log.arrays["move_starts"][1], abs=1e-3)
    assert times[3] == pytest.approx(run.log.t[np.argmax(run.log.arrays["line"] == 21)])


def test_line_numbers_leave_room_for_each_other(run):
    log = run.log
    shown = [one["x"] for one in line_numbers(log, "")]
    assert 2 <= len(shown) <= MOST_MARKS
    assert np.min(np.diff(shown)) >= log.t[-1] / MOST_MARKS


def test_path_is_coloured_by_speed_and_red_near_a_singularity(run):
    samples = np.arange(0, len(run.log.t), 5)
    colours = _colours_of_speed(run.log, samples)
    assert colours.shape == (len(samples) - 1, 2, 3)
    waiting = np.flatnonzero(run.log.arrays["line"][samples[1:]] == 21)[3:-3]
    assert (colours[waiting] == [68, 1, 84]).all()  # the darkest colour of viridis: at rest
    near = np.abs(np.sin(run.log.q[samples[1:], 4])) < 0.1  # axis 5 begins at 0
    assert near.any()
    np.testing.assert_array_equal((colours == NEAR).all(axis=(1, 2)), near)


@pytest.mark.browser
def test_click_on_a_line_goes_there_and_the_running_line_is_marked(run, tmp_path):
    file = tmp_path / "page.html"
    write_page(Results([run]), file, {"pick": "A program"})
    assert file.stat().st_size < 1e7
    with browser(tmp_path / "profile") as open_page:
        shown = open_page(file.as_uri(), 1200, 900)
        shown.wait_for("document.readyState === 'complete'")
        assert shown.evaluate("document.title") != "1"
        shown.evaluate("document.querySelector('.beside').scrollIntoView()")
        inside = "document.querySelector('iframe').contentDocument"
        shown.wait_for(f"!!document.querySelector('iframe') && !!{inside}.querySelector('[role=slider]')")
        for line in (21, 14):
            shown.evaluate(f"document.querySelector('[data-line=\"0:{line}\"]').click()")
            shown.wait_for(f"document.querySelector('.running')?.dataset.line === '0:{line}'")
        assert EVIL in shown.evaluate("document.querySelector('.program').innerText")
        assert shown.requests() == [file.as_uri()]
        assert shown.complaints() == []
