"""Pictures: points stand at their values, axes have units, no legend covers curves, the ground is opaque."""

import matplotlib.figure
import matplotlib.image
import numpy as np
import pytest

import twin
from scenarios.report import files, page
from scenarios.running.runs import Run
from scenarios.shell.command_line import main
from tests.support.example_logs import log_of, made_up_task
from twin.studies.views.plots import friction_plot


@pytest.fixture
def saved(monkeypatch):
    """Figures that are written during a test."""
    figures, save = [], matplotlib.figure.Figure.savefig

    def record(figure, *args, **settings):
        figures.append(figure)
        save(figure, *args, **settings)

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", record)
    return figures


def assert_legible(figure, path):
    picture = matplotlib.image.imread(path)
    assert picture.shape[2] == 3 or np.all(picture[..., 3] == 1.0)
    drawn = [axes for axes in figure.get_axes() if axes.axison]
    assert drawn
    assert all(axes.get_legend() is None for axes in drawn)
    labels = [axes.get_ylabel() for axes in drawn]
    assert all("[" in label for label in labels if label and not label.startswith("share"))
    assert any("[" in label for label in labels)


@pytest.mark.parametrize(("errors", "alike"), [((1e-2, 2e-2), True), ((1e-2, 1e-15), False)])
def test_runs_share_a_scale_if_their_errors_compare(saved, tmp_path, errors, alike, small_pictures):
    robot, path = twin.load("irb140"), tmp_path / "runs.png"
    logs = [log_of(robot, name, error=error) for name, error in zip(("pd", "pid"), errors, strict=True)]
    files.draw([Run(made_up_task("joint_tracking"), log, (), 0.0) for log in logs], path)
    assert_legible(saved[0], path)
    panels = [axes for axes in saved[0].get_axes() if axes.axison]
    assert (panels[0].get_ylim() == panels[1].get_ylim()) is alike
    for axes, log in zip(panels, logs, strict=True):
        assert axes.get_yscale() == "linear"
        error = (log.q_ref - log.q)[:, 0]
        ratio = axes.lines[0].get_ydata() / np.where(error, error, 1.0)
        exponent = np.log10(ratio[error != 0])
        np.testing.assert_allclose(exponent, np.round(exponent), atol=1e-9)


def test_friction_is_drawn_as_it_is_computed():
    robot = twin.load("irb140").with_drives("rigid")
    axes = friction_plot(robot).axes
    assert len(axes) == 6
    assert axes[0].get_xlabel() == "speed  [rad/s]"
    speed, friction = axes[1].lines[0].get_data()
    moving = np.isfinite(speed)
    qd = np.zeros((np.count_nonzero(moving), 6))
    qd[:, 1] = speed[moving]
    np.testing.assert_array_equal(friction[moving], twin.friction_torque(robot, qd)[:, 1])
    assert np.all(friction[moving] * speed[moving] > 0)
    assert np.isnan(friction[~moving]).all()
    with pytest.raises(twin.errors.RobotError, match="irb140 has ideal drives"):
        friction_plot(twin.load("irb140"))


def test_friction_command_lists_and_draws(tmp_path, command):
    path = tmp_path / "friction.png"
    out = command(["friction", "irb1400", "--picture", str(path)]).out
    assert "Coulomb N m" in out
    assert len(out.splitlines()) == 8
    assert path.read_bytes().startswith(b"\x89PNG")


def test_load_axes_of_the_page_reach_at_least_one_percent():
    panel = page.Panel("a", "", [page.Curve("pd", np.arange(3.0), 1e-6 * np.ones(3), None, -1.0, 1.0)])
    np.testing.assert_allclose(page._range(panel), [-0.011, 0.011], rtol=1e-12)


def test_sweep_axes_have_units(saved, tmp_path):
    path = tmp_path / "sweep.png"
    words = ["--vary", "payload=0:6", "drives.coulomb=0.5:1.5", "--samples", "10", "--picture", str(path)]
    assert main(["sweep", "joint_tracking", "--drives", "rigid", "--duration", "0.2", *words]) == 0
    assert_legible(saved[0], path)
    axes = saved[0].get_axes()
    labels = {one.get_xlabel() for one in axes} | {one.get_ylabel() for one in axes}
    assert {"payload  [kg]", "drives.coulomb  [times nominal]", "share of passing runs"} <= labels
