"""The window: what it shows, on an X server of the test's own."""

import pytest

from tests.support.window_process import passes, run

pytestmark = pytest.mark.display


def test_a_move_in_the_window_is_the_headless_move(display):
    """The window is there, shows the arm and its path, in real time, and changes no bit of the run."""
    printed = passes(
        """
        from controllers import make
        move = sample(quintic(np.zeros(6), np.full(6, 0.2), 0.4), 1e-3)
        law = make("computed_torque", robot)
        with Simulation(robot) as simulation:
            headless = run_closed_loop(simulation, law, move)
        with Simulation(robot, gui=True) as simulation:
            Display(os.environ["DISPLAY"]).window(TITLE)
            simulation.draw_path(headless.pose[:, :3])
            began = time.perf_counter()
            shown = run_closed_loop(simulation, law, move)
            took = time.perf_counter() - began
            pixels = Display(os.environ["DISPLAY"]).screenshot()
            assert simulation.picture(64, 48).shape == (48, 64, 3)
        assert shown.identical(headless)
        assert 0.35 <= took, took
        assert np.sum(pixels[..., 0] > 1.5 * pixels[..., 2] + 30) > 5000, "the arm is orange"
        print("done")
        """,
        display,
    )
    # The drawing thread says "ven = ..." when it likes; the rest of the chatter stays off the console.
    assert [line for line in printed.splitlines() if not line.startswith("ven = ")] == ["done"]


def test_the_path_is_drawn_where_it_lies(display):
    """A vertical circle beside the arm: blue points appear, and nothing else on the screen changes."""
    passes(
        """
        screen = Display(os.environ["DISPLAY"])

        def shown(changed_from, seconds):
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                image = screen.screenshot()
                if (image != changed_from).any():
                    time.sleep(0.3)  # drawn to the end
                    return screen.screenshot()
                time.sleep(0.02)
            return image

        t = np.linspace(0, 2 * np.pi, 400)
        circle = np.stack([np.full_like(t, 0.4), 0.2 * np.cos(t), 0.4 + 0.2 * np.sin(t)], axis=1)
        with Simulation(robot, gui=True, real_time=False) as simulation:
            before = screen.screenshot()
            assert (shown(before, 0.5) == before).all(), "nothing moves by itself"
            simulation.draw_path(circle)
            after = shown(before, 10.0)
            red, green, blue = np.moveaxis(after, -1, 0)
            changed = (after != before).any(axis=-1)
            assert changed.sum() > 300, changed.sum()
            assert np.mean((blue > red + 60) & (blue > green + 60) & changed) > 0.9 * np.mean(changed)
            rows, columns = np.nonzero(changed)
            assert np.ptp(rows) > 100 and np.ptp(columns) > 100, "as large as the circle"
        """,
        display,
    )


def test_a_path_beyond_the_window_comes_into_view(display):
    """Of the IRB 1400, from below the base to above the stretched arm; the camera keeps its direction."""
    passes(
        """
        from twin.engine.window.camera import _on_screen
        path = np.linspace([1.0, 0.3, -0.4], [0.4, -0.5, 2.4], 50)
        with Simulation(twin.load("irb1400"), gui=True, real_time=False) as simulation:
            client, body = simulation.bench._client, simulation.bench.drawn_arm.body
            links = [client.getLinkState(body, link)[0] for link in range(client.getNumJoints(body))]
            before = client.getDebugVisualizerCamera()
            simulation.draw_path(path[20:30])
            assert client.getDebugVisualizerCamera() == before, "it was in view"
            assert np.abs(_on_screen(before[2], before[3], path)).max() > 1
            simulation.draw_path(path)
            for _ in range(100):  # the window's own thread moves the camera with its next picture
                after = client.getDebugVisualizerCamera()
                if (widest := np.abs(_on_screen(after[2], after[3], [*path, *links])).max()) < 0.95:
                    break
                time.sleep(0.05)
            assert widest < 0.95
            assert after[8:10] == before[8:10]
        """,
        display,
    )


def test_the_fall_of_a_scenario_is_shown_too(display):
    """In a window of its own, before the driven motion."""
    printed = passes(
        """
        from scenarios import parallelogram
        shown = []
        step = Simulation.step
        Simulation.step = lambda self, *given: (step(self, *given), shown.append(self.bench is not None))
        settings = dict(gui=True, close_window=True, free_time=0.05, duration=0.05)
        log = parallelogram.run(parallelogram.Config(**settings))
        falling = len(log.arrays["free_engine"]) - 1
        assert falling == 50
        assert len(shown) == falling + len(log.t) - 1
        assert all(shown)
        print("done")
        """,
        display,
    )
    assert printed.splitlines()[-1] == "done"


def test_one_window_after_another(display):
    passes(
        """
        for _ in range(2):
            with Simulation(robot, gui=True, real_time=False) as simulation:
                run_closed_loop(simulation, hold_still, sample(hold(np.zeros(6), 0.05), 1e-3))
                try:
                    Simulation(robot, gui=True)
                except TwinError as error:
                    assert "one window is open already" in str(error), error
                else:
                    raise AssertionError("two windows")
                simulation.step(np.zeros(6))
        """,
        display,
    )


def test_no_display_is_a_sentence():
    for display, found in ((None, "DISPLAY is not set"), (":4711", "DISPLAY is ':4711' and does not answer")):
        result = run("Simulation(robot, gui=True)", display)
        last = result.stderr.strip().splitlines()[-1]
        assert last == (
            f"twin.errors.NoDisplayError: no display to open the window on ({found}); "
            "run without it (no --gui, in Python gui=False)"
        )
