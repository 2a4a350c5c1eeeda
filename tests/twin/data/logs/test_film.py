"""Films of logs: what is on their frames, which sample is shown when, and what is refused."""

import sys
from contextlib import contextmanager
from itertools import pairwise

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image, ImageSequence

from scenarios.shell.command_line import main
from tests.support.example_logs import made_log, swing
from twin import Simulation, forward_kinematics
from twin.base.errors import TwinError
from twin.studies.views import film as films
from twin.studies.views.film import (
    EDGE,
    FIRST,
    GHOSTS,
    GREY,
    STRIP,
    WHITE,
    Playback,
    Scene,
    Track,
    film,
    names_of,
    tracks,
)

pytestmark = pytest.mark.slow("draws and films")

SIZE = (240, 200)


def frames(path):
    """Every frame (N, height, width, 3) and how long it stands, in [ms]."""
    with Image.open(path) as image:
        shown = [(frame.convert("RGB"), frame.info["duration"]) for frame in ImageSequence.Iterator(image)]
    return np.array([np.array(frame) for frame, _ in shown]).astype(int), [duration for _, duration in shown]


def is_near(picture, color, far=40):
    return np.abs(np.asarray(picture).astype(int) - color).max(axis=-1) <= far


def is_orange(picture):
    return picture[..., 0] > picture[..., 2] + 60


def test_a_gif_shows_the_motion_for_as_long_as_it_took(robot, tmp_path):
    path, done = tmp_path / "a.GIF", []
    made = film(swing(robot, 0, 1.0), path, size=SIZE, fps=15, progress=done.append)
    shown, durations = frames(path)
    assert (made.frames, made.fps, made.notes) == (9, 15, ())
    assert shown.shape == (9, 200, 240, 3)
    # In hundredths of a second, which do not add up to an error; the last one stands a second longer.
    assert durations[:3] == [70, 60, 70]
    assert sum(durations) == 600 + 1000
    for before, after in pairwise(shown):
        assert (np.abs(after - before).max(axis=-1) > 60).mean() > 0.005, "the arm moves"
    assert (shown[0, 100, 2] == WHITE).all(), "the palette has the white of the ground"
    assert is_orange(shown).mean(axis=(1, 2)).min() > 0.03, "and the orange of the arm"
    np.testing.assert_allclose(done, np.arange(1, 10) / 9)


def test_frames_are_at_the_speed_up_to_the_end(robot):
    """A long log has a lower frame rate, and a note."""
    shown = tracks(swing(robot, 0, 1.0))
    for speed, count in ((1.0, 11), (0.5, 21), (2.0, 6)):
        times, fps, note = films.frame_times(shown, 20.0, speed)
        assert (len(times), times[0], times[-1], fps, note) == (count, 0.0, 0.5, 20.0, "")
    for rate in (7.0, 33.3):
        assert films.frame_times(shown, rate, 1.0)[0][-1] == 0.5, "the end is shown"
    shown = tracks(made_log(robot, np.zeros((601, robot.n)), time_step=1.0))
    times, fps, note = films.frame_times(shown, 20.0, 1.0)
    assert (len(times), times[-1]) == (films.MOST_FRAMES, 600.0)
    assert fps == pytest.approx(1199 / 600)
    assert "are more than 1200 frames: the film has 2 per second; a higher speed" in note


@contextmanager
def scene_of(logs, size=SIZE, **settings):
    """Provide the scene of logs, a simulation of the first arm, and a function that draws an arm alone."""
    scene = Scene(tracks(logs), size, yaw_deg=50.0, pitch_deg=-20.0, **settings)
    first = logs[0] if isinstance(logs, list) else logs
    with Simulation(first.robot) as simulation:

        def alone(q):
            simulation.reset(q)
            return simulation.picture(*size, **scene.camera)

        yield scene, simulation, alone
    scene.close()


def test_the_arm_is_where_its_camera_has_it(irb1400):
    """Between the legend and the time, in the middle, and as large as there is room; its tool where it is."""
    log = made_log(irb1400, np.full((1, 6), 0.4))
    with scene_of(log, title="") as (scene, simulation, alone):
        picture = np.array(scene.picture([0], 0.0, "")).astype(int)
        arm = alone(log.q[0])
        column, row = simulation.pixels(simulation.tool_pose()[:3, 3], *SIZE, **scene.camera)
    inside = (arm < 255).any(axis=2)
    rows, columns = np.nonzero(inside)
    low, high = np.array([columns.min(), rows.min()]), np.array([columns.max(), rows.max()])
    room = np.array([[0, scene.top], [SIZE[0], SIZE[1] - STRIP]])
    np.testing.assert_allclose((low + high) / 2, room.mean(axis=0), atol=4)
    assert np.max((high - low) / (room[1] - room[0])) == pytest.approx(EDGE, abs=0.03)
    near = picture[int(row) - 6 : int(row) + 7, int(column) - 6 : int(column) + 7]
    assert is_near(near, FIRST).sum() >= 4, "the dot at the tool"
    # As PyBullet draws it at this very size, but for edges, the path and its dot.
    assert (np.abs(picture - arm)[inside].max(axis=-1) < 40).mean() > 0.8


def test_two_logs_have_different_colours(robot):
    logs = [swing(robot, 0, 1.0, controller="pd"), swing(robot, 0, -1.0, controller="pid")]
    with scene_of(logs) as (scene, _, alone):
        picture = np.array(scene.picture([50, 20], 0.5, "")).astype(int)
        first, second = ((alone(log.q[k]) < 255).any(axis=2) for log, k in zip(logs, (50, 20), strict=True))
    bluish = picture[..., 2] > picture[..., 0] + 30
    assert bluish[second & ~first].mean() > 0.9, "the second one is a ghost in its colour"
    assert is_orange(picture)[first].mean() > 0.5
    assert bluish[first & ~second].mean() < 0.05
    for color in (FIRST, GHOSTS[0]):
        assert is_near(picture[: scene.top], color, 12).sum() > 50, "both are in the legend"


def test_the_path_is_drawn_as_far_as_it_was_followed(robot):
    """Beside the arm: grey where the tool should go, in colour where it went, which is below it."""
    wanted = swing(robot, 0, 1.5)
    followed = wanted.q.copy()
    followed[:, 1] = 0.4
    size = (480, 400)
    with scene_of(made_log(robot, followed, wanted.q), size) as (scene, simulation, alone):
        for sample in (10, 50):
            picture = np.array(scene.picture([sample], 0.01 * sample, "")).astype(int)
            beside = (alone(followed[sample]) == 255).all(axis=2)
            for path, color, last in ((wanted.q, GREY, 50), (followed, FIRST, sample)):
                points = forward_kinematics(robot, path)[:, :3, 3]
                places = np.rint(simulation.pixels(points, *size, **scene.camera)).astype(int)
                shown = [k for k, (column, row) in enumerate(places) if beside[row, column]]
                parts = [picture[row - 2 : row + 3, column - 2 : column + 3] for column, row in places[shown]]
                seen = [is_near(part, color).any() for part in parts]
                assert np.mean(np.equal(seen, np.array(shown) <= last)) > 0.85
                assert len(seen) > 15


def test_a_run_that_diverged_is_shown_to_its_end_and_a_film_that_fails_leaves_nothing(robot, tmp_path):
    log = swing(robot, 0, 1.0)
    log.q[1:] = np.nan
    log.q_ref[-1] = np.nan
    made = film(log, tmp_path / "a.gif", size=SIZE, fps=5, names=["wild"])
    assert made.frames == 1
    assert made.notes[0].startswith("wild: 50 of 51 samples are not shown")

    def stop(fraction):
        raise KeyboardInterrupt

    for name in ("b.gif", "b.mp4"):
        with pytest.raises(KeyboardInterrupt):
            film(log, tmp_path / name, size=SIZE, progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["a.gif"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # imageio leaves pipes
def test_an_mp4_can_be_read_back(robot, tmp_path, monkeypatch):
    path = tmp_path / "a.mp4"
    made = film(swing(robot, 0, 1.0), path, size=SIZE, fps=10)
    reader = imageio_ffmpeg.read_frames(str(path))
    about = next(reader)
    read = [np.frombuffer(frame, dtype=np.uint8).reshape(200, 240, 3).astype(int) for frame in reader]
    assert (about["size"], about["fps"], len(read), made.frames) == (SIZE, 10, 6, 6)
    assert about["codec"] == "h264"
    assert np.abs(read[-1] - read[0]).max() > 100
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(TwinError, match=r"an MP4 requires imageio-ffmpeg: pip install 'irb-twin\[film\]'"):
        film(swing(robot, 0, 1.0), path)


@pytest.fixture(scope="module")
def logs(irb140, tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    for name, angle in (("one", 1.0), ("two", 0.6)):
        swing(irb140, 0, angle, samples=11).save(folder / f"{name}.npz")
    lost = swing(irb140, 0, 1.0)
    _ = lost.pose
    lost.q[:] = np.nan
    lost.save(folder / "lost.npz")
    return folder


def test_the_command_makes_a_film_of_two_logs(logs, tmp_path, capsys):
    path = tmp_path / "b.gif"
    options = ["--size", "240x200", "--fps", "10", "--camera", "-60", "-10", "--speed", "0.5"]
    assert main(["replay", str(logs / "one.npz"), str(logs / "two.npz"), "--film", str(path), *options]) == 0
    assert f"wrote {path}" in capsys.readouterr().out
    shown, durations = frames(path)
    assert len(shown) == 3
    assert durations == [100, 100, 1100]


GIF = "one.npz --film a.gif"


def test_what_cannot_be_is_one_sentence(logs, monkeypatch, capsys):
    monkeypatch.chdir(logs)
    for words, said in (
        ("lost.npz --film a.gif", "pd cannot be shown: no sample"),
        ("one.npz --film a.avi", "a.avi: expected a film's name to end in .gif or .mp4"),
        ("one.npz --film lost/a.gif", "--film lost/a.gif: there is no folder lost"),
        (f"{GIF} --size wide", "expected width x height in pixels, as 640x480"),
        ("one.npz --film a.mp4 --size 401x301", "expected an even width and height"),
        (f"{GIF} --fps 60", "expected 0 to 50 frames per second for a .gif, got 60"),
        (f"{GIF} --camera 0 nan", "expected a finite yaw and a pitch"),
        ("one.npz " * 6 + GIF, "expected 1 to 6 logs"),
        (f"{GIF} --loop", "--loop excludes --film"),
    ):
        assert main(["replay", *words.split()]) == 2
        told = capsys.readouterr().err
        assert said in told
        assert told.count("\n") == 1
        assert not list(logs.glob("*.gif"))


def test_a_run_makes_a_film_of_its_laws(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made = []

    def noted(logs, path, names, **_):
        made.append((len(logs), names))
        return films.Film(1, 20.0, 0.0, ("it says",))

    monkeypatch.setattr(films, "film", noted)
    words = ["run", "joint_tracking", "--duration", "0.05", "--film", "a.gif"]
    assert main(words) == 0
    assert main([*words, "--controller", "pd", "computed_torque"]) in (0, 1)
    assert made == [(1, ["computed_torque"]), (2, ["pd", "computed_torque"])]
    told = capsys.readouterr()
    assert "wrote a.gif" in told.out
    assert "it says" in told.err


def playback(*logs, **settings):
    return Playback(tracks(logs), **settings)


def test_logs_of_other_periods_and_lengths_are_shown_by_time(robot):
    long, short = swing(robot, 0, 1.0, samples=101), swing(robot, 0, 1.0, samples=6, time_step=0.04)
    times = {-1.0: 0, 0.0: 0, 0.019: 0, 0.021: 1, 0.199: 5, 9.0: 5}
    track = Track(short, "pd")
    assert [track.sample(time) for time in times] == list(times.values()), "the nearest sample"
    shown = playback(long, short)
    assert (shown.start, shown.end) == (0.0, 1.0)
    shown.seek(0.12)
    assert shown.samples == (12, 3)
    shown.seek(0.7)
    assert shown.samples == (70, 5), "the short one stands at its end"


def test_time_runs_at_the_speed_and_stands_at_the_end(robot):
    shown = playback(swing(robot, 0, 1.0), speed=0.5)
    shown.advance(0.2)
    assert shown.time == pytest.approx(0.1)
    shown.play_or_pause()
    shown.advance(5.0)
    assert shown.time == pytest.approx(0.1), "it was paused"
    shown.play_or_pause()
    shown.speed = 10.0
    shown.advance(0.03)
    assert shown.time == pytest.approx(0.4)
    shown.advance(1.0)
    assert (shown.time, shown.playing, shown.at_end) == (shown.end, False, True)
    shown.play_or_pause()
    assert (shown.time, shown.playing) == (shown.start, True), "from the end it begins anew"


def test_loop_restarts_with_the_remaining_time(robot):
    shown = playback(swing(robot, 0, 1.0, start=3.0), loop=True)
    shown.advance(1.2)  # of 0.5 s
    assert shown.playing
    assert shown.time == pytest.approx(3.2)
    still = playback(made_log(robot, np.zeros((1, robot.n))), loop=True)
    still.advance(1.0)
    assert (still.time, still.samples) == (0.0, (0,))


def test_steps_are_samples_of_the_longest_log(robot):
    shown = playback(swing(robot, 0, 1.0, samples=3), swing(robot, 0, 1.0))
    shown.seek(0.104)
    for count, time in ((1, 0.11), (1, 0.12), (-1, 0.11), (10, 0.21), (-100, 0.0), (100, 0.5)):
        shown.step(count)
        assert shown.time == pytest.approx(time)
        assert not shown.playing


def test_non_finite_and_folded_samples_are_omitted_and_reported(robot, irb1400):
    log = swing(robot, 0, 1.0)
    assert Track(log, "pd").note == ""
    log.q[40:] = np.nan
    track = Track(log, "pid")
    assert track.sample(9.0) == 39
    assert track.note.startswith("pid: 11 of 51 samples are not shown (not finite or folded); the last")
    log.q[:] = np.inf
    with pytest.raises(TwinError, match=r"pid cannot be shown: no sample"):
        Track(log, "pid")
    folded = np.zeros((3, 6))
    folded[1, 2] = 3.0
    assert Track(made_log(irb1400, folded), "pd").samples.tolist() == [0, 2]


def test_labels_of_logs_are_distinct(robot, irb1400):
    still = np.zeros((2, 6))
    pd, other = made_log(robot, still), made_log(irb1400, still)
    pid = made_log(robot, still, controller="pid")
    assert names_of([pd, pid]) == ["pd", "pid"]
    assert names_of([pd, other]) == ["pd, irb140", "pd, irb1400"]
    assert names_of([pd, pd], ["a/soft.npz", "a/hard.npz"]) == ["soft", "hard"]
    assert names_of([pd, pd], ["a/run.npz", "b/run.npz"]) == ["a/run.npz", "b/run.npz"]
    assert names_of([pd, pd]) == ["pd 1", "pd 2"]


def test_what_cannot_be_shown_is_a_sentence(robot):
    log = swing(robot, 0, 1.0, samples=2)
    for given, sentence in (
        (([log] * 7,), "expected 1 to 6 logs, one per colour, got 7"),
        (([],), "expected 1 to 6 logs"),
        ((log, ["a", "b"]), "expected a name for each of 1 logs, got 2"),
    ):
        with pytest.raises(ValueError, match=sentence):
            tracks(*given)
    for speed in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="expected a speed above 0"):
            playback(log, speed=speed)
