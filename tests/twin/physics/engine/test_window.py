"""The window: what it shows, what a person does at it, and what of that changes the run.

Opening a window takes 2 s of processor time, and each picture is drawn without a graphics card, in 0.06 s.
"""

import pytest

from tests.support.window_process import passes, run
from twin.base.errors import NoDisplayError
from twin.physics.engine.simulation import Simulation

pytestmark = pytest.mark.display


@pytest.mark.parametrize(
    ("name", "found"), [("", "DISPLAY is not set"), (":4711", "DISPLAY is ':4711' and does not answer")]
)
def test_no_display_is_a_sentence(monkeypatch, irb140, name, found):
    monkeypatch.setenv("DISPLAY", name)
    with pytest.raises(NoDisplayError) as caught:
        Simulation(irb140, gui=True)
    assert str(caught.value) == (
        f"no display to open the window on ({found}); run without it (no --gui, in Python gui=False)"
    )


def test_a_run_that_is_watched_is_the_run_that_is_not(display):
    """To the bit: with text, ghosts, drawings, everything switched on, a pause and single steps."""
    printed = passes(
        """
        robot = twin.load("irb1400").with_drives("elastic")
        law, move = make("computed_torque", robot), sample(quintic(np.zeros(6), np.full(6, 0.15), 0.3), 1e-3)
        with Simulation(robot) as simulation:
            log = run_closed_loop(simulation, law, move)
        with Simulation(robot, gui=True) as simulation:
            bench, screen = simulation.bench, Display(os.environ["DISPLAY"])
            ghosts = [bench.ghost("blue one", robot), bench.ghost("green one", robot, (0, 0.9, 0))]
            asked = []

            def show():
                q = simulation.state()[0]
                for k, ghost in enumerate(ghosts):
                    ghost.place(q + 0.4 - 0.8 * k)
                bench.write_line("line", f"joint 1: {q[0]:.6f}")
                bench.path("tool", log.pose[:, :3])
                bench.arrow("arrow", np.zeros(3), q[:3], (1, 0, 0))
                if bench.time > 0.25 and len(asked) < 5:
                    asked.append(bench.steps)
                    bench.step_once()
                elif asked:
                    bench.paused = False

            bench.on_picture(show)
            bench._controls._with_frames = bench._controls._with_coms = True
            began = time.perf_counter()
            shown = run_closed_loop(simulation, law, move)
            took = time.perf_counter() - began
            assert shown.identical(log)
            assert took >= 0.25, took
            assert np.all(np.diff(asked)[1:] == 1), asked
            bench._controls._with_frames = bench._controls._with_coms = False
            pictures = []
            for others in (True, False):
                bench.picture()
                pictures.append(screen.screenshot())
                ghosts[0].show(False)
                ghosts[1].remove()
                bench._callbacks.clear()
            assert simulation.picture(64, 48).shape == (48, 64, 3)
        for mine, others in ((2, (0, 1)), (1, (0, 2))):
            count = []
            for image in (picture[180:560, 260:760] for picture in pictures):
                first, second = (image[..., mine] > image[..., other] + 40 for other in others)
                count.append(np.sum(first & second))
            assert count[0] > count[1] + 2000, (mine, count)
        assert np.sum(pictures[1][..., 0] > 1.5 * pictures[1][..., 2] + 30) > 5000, "the arm is orange"
        print("done")
        """,
        display,
    )
    # The drawing thread says "ven = ..." when it likes; the rest of the chatter stays off the console.
    assert [line for line in printed.splitlines() if not line.startswith("ven = ")] == ["done"]


def test_what_a_person_does_at_the_window(display):
    """Keys, buttons and sliders; a push and a payload are the wrench and the payload of a run without it.

    It takes 10 s: the window sees what a person does at its next picture, of which it makes a hundred.  At
    first a circle beside the arm appears, and nothing else; a second window is refused.  A path that leaves
    the view makes the camera step back, which keeps its direction.
    """
    passes(
        """
        from twin.physics.engine.window.camera import _on_screen

        robot = robot.with_drives("elastic")
        q0 = robot.poses["test_1"]
        simulation = Simulation(robot, gui=True, real_time=False)
        bench, screen = simulation.bench, Display(os.environ["DISPLAY"])
        window = screen.window(TITLE)
        t = np.linspace(0, 2 * np.pi, 400)
        camera = bench._client.getDebugVisualizerCamera
        view, before = camera(), screen.screenshot()
        simulation.draw_path(np.stack([np.full_like(t, 0.4), 0.2 * np.cos(t), 0.4 + 0.2 * np.sin(t)], axis=1))
        after = screen.until(lambda image: (image != before).any())
        red, green, blue = np.moveaxis(after, -1, 0)
        changed = (after != before).any(axis=-1)
        assert changed.sum() > 300, changed.sum()
        assert np.mean((blue > red + 60) & (blue > green + 60) & changed) > 0.9 * np.mean(changed)
        assert min(map(np.ptp, np.nonzero(changed))) > 100, "as large as the circle"
        try:
            Simulation(robot, gui=True)
        except TwinError as error:
            assert "one window is open already" in str(error), error
        else:
            raise AssertionError("two windows")
        assert camera() == view, "the circle was in view"
        path, body = np.linspace([1.0, 0.3, -0.4], [0.4, -0.5, 2.4], 50), bench.drawn_arm.body
        count = bench._client.getNumJoints(body)
        links = [bench._client.getLinkState(body, link)[0] for link in range(count)]
        assert np.abs(_on_screen(view[2], view[3], path)).max() > 1
        simulation.draw_path(path)
        for _ in range(100):  # the window's own thread moves the camera with its next picture
            back = camera()
            if (widest := np.abs(_on_screen(back[2], back[3], [*path, *links])).max()) < 0.95:
                break
            time.sleep(0.05)
        assert widest < 0.95
        assert back[8:10] == view[8:10]
        done = []  # (tau, push, payload) of every step

        def steps(count):
            for _ in range(count):
                tau = gravity_torque(robot, simulation.state()[0])
                done.append((tau, bench.push, simulation.robot.payload))
                simulation.step(tau)

        def pictures(count=2):
            for _ in range(count):
                bench.picture()

        def press(*keys):
            for key in keys:
                screen.press(window, key)
            pictures()

        def click(x, y):
            for kind in (MOTION, BUTTON_PRESS, BUTTON_RELEASE):
                screen.mouse(window, kind, x, y)
            pictures()

        def later(seconds, action):
            threading.Timer(seconds, action).start()

        simulation.reset(q0)
        steps(20)
        press(" ")
        assert bench.paused
        press("n"), press("n")
        later(0.3, lambda: screen.press(window, " "))
        began = time.perf_counter()
        steps(4)  # two that were asked for, and one that waits for the space bar
        assert bench.steps == 24 and not bench.paused and time.perf_counter() - began > 0.2

        speeds = [bench.speed]
        for key in "--=":
            press(key)
            speeds.append(bench.speed)
        assert speeds == [np.inf, 8.0, 4.0, 8.0]
        bench.speed = np.inf

        with screen.held(window, "f"):
            pictures()
            assert np.array_equal(bench.push, [60, 0, 0])
            steps(15)
        pictures()
        assert bench.push is None
        steps(5)
        for kind, x in ((MOTION, 913), (BUTTON_PRESS, 913), (MOTION, 950), (BUTTON_RELEASE, 950)):
            screen.mouse(window, kind, x, 127)
            pictures(1)
        pictures(1)
        force = bench._controls._force.value
        assert 100 < force < 240, force
        click(890, 149)  # along y
        click(890, 171)  # start
        assert np.array_equal(bench.push, [0, force, 0])
        steps(15)
        press("p")
        steps(15)
        click(890, 171)  # stop
        payload = simulation.robot.payload
        assert payload.mass == 3.0 and bench.push is None
        steps(5)
        assert [(round(1e3 * t), what) for t, what in bench.touches] == [
            (24, "pushed with 60 N along x"), (39, "push ended"), (44, f"pushed with {force:g} N along y"),
            (59, "payload of 3 kg attached"), (74, "push ended")]
        press("p")
        assert simulation.robot.payload is None
        press("p")

        with Simulation(robot) as headless:
            headless.reset(q0)
            for tau, push, payload in done:
                if headless.robot.payload is not payload:
                    headless.change_payload(payload)
                headless.step(tau, None if push is None else [*push, 0, 0, 0])
            assert np.array_equal(headless.state(), simulation.state())
            assert np.array_equal(headless.motor_state(), simulation.motor_state())

        slider = bench.panel.slider("gain [1/s]", 0.0, 10.0, 0.3)
        button = bench.panel.button("switch")
        pictures()
        assert slider.value == 0.3, "exactly"
        slider.set(7.7)
        pictures()
        assert slider.value == 7.7 and bench._controls._force.value == force
        click(890, 260 + 44)
        assert button.pressed() and not button.pressed()
        slider.remove()
        pictures()
        click(890, 260)
        assert button.pressed()
        first = bench.panel.slider("on top", 0.0, 10.0, 0.3, first=True)
        pictures()
        click(890, 260 + 44)
        assert button.pressed()

        def keys_seen():
            return [name for foot, name in bench._text._shown if foot]

        press("h", "i")
        assert not bench.panels_shown and bench._controls.help[-1] in keys_seen()
        for key, shown in (("?", False), (0xFFBE, True)):  # F1
            press(key)
            assert bool(keys_seen()) == shown, key
        press(*"tcaih1234")
        assert bench.panels_shown and bench._client.getDebugVisualizerCamera()[9] == -89.0  # degrees
        simulation.reset(q0)
        assert [what for _, what in bench.touches] == ["payload of 3 kg attached"]

        later(0.3, lambda: screen.press(window, 0xFF0D))  # return
        bench.linger()
        assert not bench.lost
        bench.paused = True
        later(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        began = time.perf_counter()
        try:
            steps(2)
        except KeyboardInterrupt:
            assert time.perf_counter() - began < 2.0
        else:
            raise AssertionError("not interrupted")
        simulation.close()
        """,
        display,
    )


def test_closing_the_window_ends_the_run_with_a_sentence(display):
    """By the escape key, or from the title bar, while it is running, paused or lingering after the run."""
    closings = ["escape running", "escape lingering", "bar paused"]
    result = run(
        f"""
        def close():
            other = Display(os.environ["DISPLAY"])
            (other.press_escape if how == "escape" else other.close_from_title_bar)(other.window(TITLE))

        for closing in {closings}:
            how, when = closing.split()
            with Simulation(robot, gui=True) as simulation:
                def law(state, reference):
                    if state.t == 0.02:
                        if when == "running":
                            close()
                        else:
                            threading.Timer(0.2, close).start()
                            simulation.bench.paused = when == "paused"
                        if when == "lingering":
                            simulation.bench.linger()
                            print("it is closed:", simulation.bench.lost)
                    return hold_still(state, reference)

                try:
                    run_closed_loop(simulation, law, sample(hold(np.zeros(6), 10.0), 1e-3))
                except TwinError as error:
                    print(type(error).__name__, error)
        print("the program goes on")
        """,
        display,
    )
    said = "TouchedError the simulation ended because its window was closed\n"
    assert result.stdout.count(said) == len(closings)
    assert result.stdout.endswith(f"{said}the program goes on\n"), result.stdout + result.stderr
    assert result.stdout.count("it is closed: True") == 1
    assert "Traceback" not in result.stderr
    # Without its window PyBullet cannot shut down; the process ends all the same.
    assert result.returncode == 1
