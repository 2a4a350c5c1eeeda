"""Objects at the prompt and in a notebook: short texts, tables, and plots that appear exactly once."""

import re
from dataclasses import replace

import matplotlib.image
import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import controllers
import twin
from tests.support.example_logs import irb140_log
from twin.base.formatting import html_table, short_repr
from twin.studies.views.browser import Replay

pytestmark = pytest.mark.slow("draws and films")

CELLS = {
    "robot": "import numpy as np, twin, controllers\nrobot = twin.load('irb140')\nrobot",
    "robot plot": "robot.plot(robot.poses['test_1'])",
    "log": """
move = twin.quintic(robot.poses['zero'], robot.poses['test_1'], 0.2)
samples = twin.sample_semi_implicit(move, 1e-3)
plant = twin.AnalyticPlant(robot)
law = controllers.make('pd', robot)
log = twin.run_closed_loop(plant, law, samples)
log""",
    "plot": "log.plot('torque')",
    "law": "law",
    "comparison": "twin.compare({'a': log, 'b': log})",
    "replay": "log.replay()",
    "pyplot": "import matplotlib.pyplot as plt",
    "plot after pyplot": "log.plot('torque', ['joint_2'])",
    "assigned": "figure = log.plot()",
}


def test_cells_show_tables_small_replays_and_each_plot_exactly_once(monkeypatch):
    """No output is a long text, and an assigned plot does not appear.

    It takes 5 s of processor time, of which 3 s are for the imports of a kernel and of this project.
    """
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # loading compiled functions would take longer
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source.strip()) for source in CELLS.values()]
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}
    assert outputs.pop("assigned") == outputs.pop("pyplot") == []
    for name, cell in outputs.items():
        (output,) = cell
        html, picture = output["data"].get("text/html", ""), "image/png" in output["data"]
        assert picture == ("plot" in name)
        assert ("<table>" in html) == (name in ("robot", "log", "law", "comparison"))
        assert len(output["data"]["text/plain"]) < 2000
        assert len(re.sub(r'(src|srcdoc)="[^"]*"', "", html)) < 2000
        if name == "replay":
            assert html.startswith("<iframe srcdoc=")
            assert 0.5e6 < len(html) < 1.5e6


def test_plots_have_an_opaque_white_ground(tmp_path):
    file = tmp_path / "plot.png"
    for plot in (irb140_log().plot(), twin.load("irb1400").plot()):
        file.write_bytes(plot.png())
        picture = matplotlib.image.imread(file)
        assert np.all(picture[0, 0] == 1.0)
        assert picture.shape[2] == 3 or np.all(picture[..., 3] == 1.0)


def test_texts_of_objects_are_short_and_tables_have_units():
    robot, log = twin.load("irb140").with_drives("rigid"), irb140_log()
    move = twin.quintic(np.zeros(6), np.full(6, 0.1), 1.0)
    objects = [
        robot, robot.tree, robot.drives, move, twin.sample(move, 1e-2), log, twin.compare(log),
        twin.joint_wrenches(robot, log.q[0], log.qd[0], log.qd[0]), twin.check_model(robot.urdf),
        *(controllers.make(name, robot) for name in ("pd", "pid", "cascade", "computed_torque")),
    ]  # fmt: skip
    for one in objects:
        assert len(repr(one)) <= 400
        assert "array(" not in repr(one)
        assert " object at " not in repr(one)
    samples = twin.sample(twin.quintic(np.zeros(6), np.ones(6), 1.0), 0.5)
    assert short_repr(samples) == "<Samples: t [0.  0.5 1. ], q (3, 6), qd (3, 6), qdd (3, 6)>"
    html = twin.load("irb1400").with_payload(twin.Payload(5))._repr_html_()
    assert "5 kg at the flange" in html
    assert "<td>joint_2</td><td>-70 deg to 70 deg</td><td>120 deg/s</td>" in html
    assert "<td>joint_elbow</td><td>passive</td>" in html
    assert "<script>" not in html_table("<script>", [("<script>",), ("<script>",)])


def test_replay_is_saved_as_a_page_if_it_has_a_finite_sample(tmp_path):
    log = irb140_log()
    page = log.replay()
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    with pytest.raises(twin.errors.TwinError, match=r"pd cannot be shown: no sample has finite"):
        Replay.of({"pd": replace(log, q=np.full_like(log.q, np.nan))})
