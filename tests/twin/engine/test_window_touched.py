"""What a person does at the window, and what of it changes the run."""

import pytest

from tests.support.window_process import passes, run

pytestmark = pytest.mark.display


def test_a_run_that_is_watched_is_the_run_that_is_not(display):
    """To the bit: with text, ghosts, drawings, everything switched on, a pause and single steps."""
    passes(
        """
        def watched(robot, log, seen):
            with Simulation(robot, gui=True, real_time=False) as simulation:
                bench, screen = simulation.bench, Display(os.environ["DISPLAY"])
                ghosts = [bench.ghost("blue one", robot), bench.ghost("green one", robot, (0, 0.9, 0))]
                asked = []

                def show():
                    q = simulation.state()[0]
                    for k, ghost in enumerate(ghosts):
                        ghost.place(q + 0.4 - 0.8 * k)
                    for k in range(10):
                        bench.write_line(f"line {k}", f"joint {k % robot.n}: {q[k % robot.n]:.6f}")
                    bench.path("tool", log.pose[:, :3])
                    bench.arrow("arrow", np.zeros(3), q[:3], (1, 0, 0))
                    if bench.time > 0.02 and len(asked) < 5:
                        asked.append(bench.steps)
                        bench.step_once()
                    elif asked:
                        bench.paused = False

                bench.on_picture(show)
                bench._controls._with_frames = bench._controls._with_coms = True
                shown = run_closed_loop(simulation, make("computed_torque", robot), move)
                assert shown.identical(log)
                assert np.all(np.diff(asked)[1:] == 1), asked
                bench.wait_until(lambda: True)
                bench.picture()
                both = screen.screenshot()
                ghosts[0].show(False)
                ghosts[1].remove()
                bench._callbacks.clear()
                bench.picture()
                seen.append((both, screen.screenshot()))

        from controllers import make
        move = sample(quintic(np.zeros(6), np.full(6, 0.15), 0.1), 1e-3)
        for name, mode in (("irb140", "elastic"), ("irb1400", "ideal")):
            robot = twin.load(name).with_drives(mode)
            with Simulation(robot) as simulation:
                log = run_closed_loop(simulation, make("computed_torque", robot), move)
            watched(robot, log, seen := [])
            [(with_ghosts, without)] = seen
            middle = np.s_[180:560, 260:760]
            for mine, others in ((2, (0, 1)), (1, (0, 2))):
                count = []
                for image in (with_ghosts[middle], without[middle]):
                    first, second = (image[..., mine] > image[..., other] + 40 for other in others)
                    count.append(np.sum(first & second))
                assert count[0] > count[1] + 2000, (name, mine, count)
        """,
        display,
    )


def test_what_a_person_does_at_the_window(display):
    """Keys, buttons and sliders; a push and a payload are the wrench and the payload of a run without it."""
    passes(
        """
        import signal
        import threading
        from tests.support.xwindow import BUTTON_PRESS, BUTTON_RELEASE, KEY_PRESS, KEY_RELEASE, MOTION
        robot = twin.load("irb140").with_drives("elastic")
        q0 = robot.poses["test_1"]
        simulation = Simulation(robot, gui=True, real_time=False)
        bench, screen = simulation.bench, Display(os.environ["DISPLAY"])
        window = screen.window(TITLE)
        done = []  # (tau, push, payload) of every step

        def steps(count):
            for _ in range(count):
                tau = gravity_torque(robot, simulation.state()[0])
                done.append((tau, bench.push, simulation.robot.payload))
                simulation.step(tau)

        def pictures(count=2):
            for _ in range(count):
                bench.picture()

        def press(key):
            screen.press(window, key)
            pictures()

        def mouse(*moves):
            for kind, x, y in moves:
                screen.mouse(window, kind, x, y)
                pictures(1)
            pictures(1)

        def click(x, y):
            mouse((MOTION, x, y), (BUTTON_PRESS, x, y), (BUTTON_RELEASE, x, y))

        simulation.reset(q0)
        steps(20)
        press(" ")
        assert bench.paused
        press("n"), press("n"), press("n")
        threading.Timer(1.0, lambda: screen.press(window, " ")).start()
        began = time.perf_counter()
        steps(4)  # three that were asked for, and one that waits for the space bar
        assert bench.steps == 24 and not bench.paused and time.perf_counter() - began > 0.5

        before = bench.speed
        press("-")
        assert (before, bench.speed) == (np.inf, 8.0)
        press("-")
        press("=")
        assert bench.speed == 8.0
        bench.speed = np.inf

        screen.press(window, "f", (KEY_PRESS,))
        pictures()
        assert np.array_equal(bench.push, [60, 0, 0])
        steps(15)
        screen.press(window, "f", (KEY_RELEASE,))
        pictures()
        assert bench.push is None
        steps(5)
        mouse((MOTION, 913, 127), (BUTTON_PRESS, 913, 127), (MOTION, 950, 127), (BUTTON_RELEASE, 950, 127))
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

        press("h"), press("i")
        assert not bench.panels_shown and bench._controls.help[-1] in keys_seen()
        for key, shown in (("?", False), ("/", True), (0xFFBE, False), (0xFFBE, True)):  # F1
            press(key)
            assert bool(keys_seen()) == shown, key
        for key in "tcaih1234":
            press(key)
        assert bench.panels_shown and bench._client.getDebugVisualizerCamera()[9] == -89.0  # degrees
        simulation.reset(q0)
        assert [what for _, what in bench.touches] == ["payload of 3 kg attached"]

        threading.Timer(1.0, lambda: screen.press(window, 0xFF0D)).start()  # return
        bench.linger()
        assert not bench.lost
        bench.paused = True
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
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


@pytest.mark.parametrize(
    ("how", "when"),
    [
        ("press_escape", "running"),
        ("close_from_title_bar", "running"),
        ("close_from_title_bar", "paused"),
        ("press_escape", "lingering"),
    ],
)
def test_closing_the_window_ends_the_run_with_a_sentence(display, how, when):
    result = run(
        f"""
        import threading

        def close():
            other = Display(os.environ["DISPLAY"])
            other.{how}(other.window(TITLE))

        with Simulation(robot, gui=True) as simulation:
            def closing(state, reference):
                if 0.1 <= state.t < 0.101:
                    if "{when}" == "running":
                        close()
                    elif "{when}" == "paused":
                        simulation.bench.paused = True
                        threading.Timer(0.3, close).start()
                    else:
                        threading.Timer(0.3, close).start()
                        simulation.bench.linger()
                        print("it is closed:", simulation.bench.lost)
                return hold_still(state, reference)

            try:
                run_closed_loop(simulation, closing, sample(hold(np.zeros(6), 10.0), 1e-3))
            except TwinError as error:
                print(type(error).__name__, error)
        print("the program goes on")
        """,
        display,
    )
    said = "TouchedError the simulation ended because its window was closed"
    assert result.stdout.endswith(f"{said}\nthe program goes on\n"), result.stdout + result.stderr
    assert ("it is closed: True" in result.stdout) == (when == "lingering")
    assert "Traceback" not in result.stderr
    # Without its window PyBullet cannot shut down; the process ends all the same.
    assert result.returncode == (0 if how == "press_escape" else 1)
