"""The report: one file that opens in a browser without a network, moves, and shows any text as text."""

import io
import json
import os
import re
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import trimesh
from PIL import Image

from scenarios.judging.following import gains
from scenarios.report import page
from scenarios.report.page import grouped, logged
from scenarios.report.results import Results
from scenarios.report.worst_moment import worst_moment
from scenarios.running.runs import repeat_command
from scenarios.shell.command_line import main
from tests.support import tasks
from tests.support.browser import browser
from twin.studies.views import browser as replay
from twin.studies.views.browser import Mesh, coarser

EVIL = "<script>document.title = 'run'</script></iframe>"
MOVED = 0.003  # of all pixels: so many change when the arm moves


@pytest.fixture(scope="module")
def runs():
    """Two laws on the arm with a closed loop; the second has a name that is none."""
    laws = ("computed_torque", "pd")
    settings = {"robot": "irb1400", "duration": 1.0, "seed": 7}
    first, second = (tasks.executed("joint_tracking", controller=law, **settings) for law in laws)
    return [first, replace(second, label=EVIL)]


@pytest.fixture(scope="module")
def written(runs, tmp_path_factory):
    """The file, and what was open before and after it was written."""
    file = tmp_path_factory.mktemp("page") / "report.html"
    before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    page.write_page(Results(runs), file, {"joint_tracking": EVIL})
    return file, before, (threading.active_count(), len(os.listdir("/proc/self/fd")))


def test_page_contains_commands_and_settings_and_leaves_no_thread_and_no_socket(written, runs):
    file, before, after = written
    text = file.read_text(encoding="utf-8")
    parts = (
        "Everything passes", repeat_command(runs[1]), "reference speed / its limit", runs[1].metrics[0].why,
        "numpy ", '<th scope="row">Kp</th>',
    )  # fmt: skip
    assert [part for part in parts if part not in text] == []
    held = re.search(r'id="made-with">(.*?)</script>', text)[1]
    assert [one["seed"] for one in json.loads(held)["settings"]] == [7, 7]
    assert file.stat().st_size < 7e6
    assert after == before


def test_text_is_text(written):
    text = written[0].read_text(encoding="utf-8")
    assert "<script>document.title" not in text
    assert "&lt;script&gt;document.title" in text
    evil = page.rendered(Results([]), [], {"held": "</script>"}, "")
    held = re.search(r'id="held">(.*?)</script>', evil)[1]
    assert json.loads(held) == "</script>"


def test_no_character_turns_the_direction_of_a_name(runs):
    evil = "law\u202egnp.exe\u2066"
    task = runs[0].task._replace(entry=replace(runs[0].task.entry, name=evil))
    run = replace(runs[0], task=task, label=evil, log=None)
    shown = page.rendered(Results([run]), [], {"name": evil}, "")
    assert shown.count("law\ufffdgnp.exe\ufffd") == 4  # title, heading, verdict, data
    assert not [text for text in ("\u202e", "\u2066", "\\u202e") if text in shown]


@pytest.mark.browser
def test_in_a_browser(written, tmp_path):
    """It asks for nothing, complains of nothing, draws its curves, and its replay moves."""
    with browser(tmp_path / "profile") as open_page:
        shown = open_page(written[0].as_uri(), 900, 700)
        shown.wait_for("document.readyState === 'complete'")
        assert shown.evaluate("document.title") == "irb-twin report: joint_tracking"
        assert EVIL in shown.evaluate("document.querySelector('section').innerText")
        shown.evaluate("document.querySelectorAll('.curves').forEach(draw)")
        lines = shown.evaluate("document.querySelectorAll('.scatterlayer .js-line').length")
        assert lines == 2 * (3 * 6 + 2 + 5)
        shown.evaluate("document.querySelector('[data-seek]').click()")
        inside = "document.querySelector('iframe').contentDocument"
        shown.wait_for(f"!!{inside}.querySelector('[role=slider]')")
        now = f"Number({inside}.querySelector('[role=slider]').ariaValueNow)"
        arms = [False]
        for moment in (0.125, 1.0, 0.125):
            shown.evaluate(f"seek(document.querySelector('section'), {moment})")
            shown.wait_for(f"Math.abs({now} - {moment}) < 1e-6")
            arms.append(orange(shown, arms[-1]))
        _, early, late, again = arms
        assert np.count_nonzero(early) > 3000
        assert np.count_nonzero(early & late) > 100  # the base stays
        assert np.mean(early != again) < 1e-3
        assert shown.requests() == [written[0].as_uri()]
        assert shown.complaints() == []
        still = open_page(written[0].as_uri(), 900, 700)
        still.wait_for("document.readyState === 'complete'")
        still.evaluate("HTMLCanvasElement.prototype.getContext = () => null")
        still.evaluate("document.querySelector('[data-seek]').click()")
        still.wait_for("document.querySelector('.replay img').naturalWidth === 800")
        assert "has no WebGL" in still.evaluate("document.querySelector('.replay').innerText")
        assert still.complaints() == []


def orange(shown, before):
    """Where the arm's orange is on the screen, when that is elsewhere than before, and at rest."""
    last = before
    for _ in range(60):
        picture = np.asarray(Image.open(io.BytesIO(shown.screenshot())).convert("RGB")).astype(int)
        red, green, blue = np.moveaxis(picture, -1, 0)
        now = (red > 180) & (red > blue + 100) & (green > blue)
        if np.array_equal(now, last) and np.mean(now != before) > MOVED:
            return now
        last = now
        time.sleep(0.2)
    raise AssertionError("the arm does not move, or does not come to rest")


def test_long_runs_and_many_laws_stay_small(runs):
    """Five laws, a long time: as many points and frames as a page has room for."""
    (group,) = grouped(runs)
    log, N = runs[1].log, 100_001
    arrays = {
        name: np.resize(getattr(log, name), (N, 6))
        for name in ("q_ref", "qd_ref", "qdd_ref", "q", "qd", "tau", "tau_demand", "saturated")
    }
    long = replace(
        log, t=1e-3 * np.arange(N), loop_gap=np.zeros(N), arrays={}, tau_joint=None, q_motor=None,
        qd_motor=None, q_seen=None, qd_seen=None, **arrays,
    )  # fmt: skip
    many = [one._replace(log=long) for one in 5 * logged(group)]
    points = page._share(page.ALL_POINTS, page.curve_count(many), page.FEWEST_POINTS, page.MOST_POINTS)
    frames = page._share(replay.MOST_POSES, replay.links(many), replay.FEWEST_FRAMES, replay.MOST_FRAMES)
    assert points * page.curve_count(many) <= page.ALL_POINTS
    assert frames * replay.links(many) <= replay.MOST_POSES
    assert len(replay.frame_times([one.log for one in many], frames)) <= frames
    assert len(json.dumps(page.curve_figures(many[:1], points))) < 1e6


def test_page_has_gains_of_a_user_controller():
    law = SimpleNamespace(Kp=np.arange(6.0), Kd=2, Ki="none", Kv=np.zeros(5), name="own")
    told = gains(law, 6)
    assert list(told) == ["Kp", "Kd"]
    np.testing.assert_array_equal(list(told.values()), [np.arange(6.0), np.full(6, 2.0)])
    assert gains(lambda state, reference: 0, 6) == {}


def test_frames_are_where_a_run_was_worst(runs):
    logs = [run.log for run in runs]
    moments = [worst_moment(log).t for log in logs]
    times = replay.frame_times(logs, 40, moments)
    assert len(times) <= 40
    assert set(moments) <= set(times)
    late = replay.at_times(logs[0], logs[0].q, np.array([0.0, 0.5, 99.0]))
    np.testing.assert_array_equal(late, logs[0].q[[0, 500, -1]])


def test_a_mesh_with_too_many_triangles_becomes_coarser():
    ball = trimesh.creation.icosphere(subdivisions=5, radius=0.1)
    rough = coarser(Mesh(0, (0, 0, 0), ball.vertices, ball.faces, -ball.vertices / 0.1), 0.01)
    assert 100 < len(rough.faces) < len(ball.faces) / 4
    np.testing.assert_allclose(np.linalg.norm(rough.vertices, axis=1), 0.1, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(rough.inside(0.02), axis=1), 0.08, rtol=1e-12)


def test_a_run_that_did_not_finish_has_its_report(tmp_path, capsys):
    file = tmp_path / "broken.html"
    words = ["--controller", "pd", "--set", "Kp=2e5", "Kd=2e3", "--report", str(file)]
    assert main(["run", "joint_tracking", *words]) == 1
    text = file.read_text(encoding="utf-8")
    assert "1 of 1 run FAILS" in text
    assert "did not finish: " in text
    assert '<th scope="row">Kp</th><td>200000</td>' in text  # the gain
    assert str(file) in capsys.readouterr().out
