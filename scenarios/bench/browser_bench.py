"""Robot under a controller in a browser; the user jogs its joints by sliders, in real time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenarios.bench.jogging import Follower
from twin.base.errors import DivergenceError
from twin.physics.control.closed_loop import run_closed_loop
from twin.physics.engine.simulation import Simulation
from twin.physics.robot.units import shown
from twin.studies.views.browser import View

if TYPE_CHECKING:
    from scenarios.setup import Setup

PART = 0.03  # s: simulated time between two pictures
LATEST = 0.2  # s: largest delay behind real time that is made up


def jog(setup: Setup, start: NDArray, duration: float, port: int, announce: Callable[[str], None]) -> NDArray:
    """Simulate the robot under its controller, led by the sliders of a page; return the last positions.

    Args:
        setup: robot, controller, drives, payload.
        start: (n,) initial joint positions, in [rad].
        duration: simulated time after which the session ends, in [s].
        port: port of the page; 0 for a free one.
        announce: callback that receives the address of the page.

    Raises:
        TwinError: the robot or controller does not exist, or a shape cannot be drawn.
    """
    robot = setup.load_robot()
    law = setup.control_law(setup.controller_model(robot))
    follower = Follower.of(robot, start, setup.period)
    count = max(1, round(PART / setup.period))
    view = View(robot, start, port=port, follow=False)
    restart = view.server.gui.add_button("restart")
    requested: list[bool] = []
    restart.on_click(lambda _: requested.append(True))
    try:
        with Simulation(robot, time_step=setup.time_step) as simulation:
            simulation.reset(start)
            announce(view.url)
            began = time.perf_counter()
            while follower.k * setup.period < duration:
                follower.target = view.target
                samples = follower.samples(count)
                try:
                    log = run_closed_loop(
                        simulation, law, samples, part=True, steps_per_period=setup.steps_per_period
                    )
                    error = log.q_ref[-1] - log.q[-1]
                    worst = int(np.argmax(np.abs(error)))
                    size = shown(error[worst], robot.joint_kinds[worst], 3)
                    text = f"error of {robot.joint_names[worst]}: {size}  \n{setup.controller}"
                except DivergenceError as failure:
                    text = f"{failure}: press restart"
                view.show(simulation.state()[0], text)
                if requested:
                    requested.clear()
                    simulation.reset(start)
                    law.reset()
                    follower.restart(start)
                ahead = began + follower.k * setup.period - time.perf_counter()
                began -= min(0.0, ahead + LATEST)  # after a long wait the arm does not race
                time.sleep(max(0.0, ahead))
            return simulation.state()[0]
    finally:
        view.close()
