"""Study of iterative learning: one scenario, its controller, and each combination of update and signal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scenarios.running.registry import Task
    from scenarios.studies.learning.learn import Learn
    from twin.data.logs.log import Log
    from twin.physics.robot.robot import Robot
    from twin.physics.trajectories.sampling import Samples
    from twin.studies.learning.learning_controller import Iteration, LearningController
    from twin.studies.learning.updates import Update


@dataclass
class Learned:
    """Result of one combination.

    Attributes:
        method, signal: update, and side of the springs whose error was learned from.
        learning: controller with the errors of all runs and the best input.
        end: why learning ended before the last run; "" if it did not.
    """

    method: str
    signal: str
    learning: LearningController
    end: str = ""

    @property
    def label(self) -> str:
        """Name of the combination, as `lead, motor`."""
        return f"{self.method}, {self.signal}"

    @property
    def iterations(self) -> list[Iteration]:
        """Errors of the runs."""
        return self.learning.iterations

    @property
    def best(self) -> int:
        """Index of the run with the smallest error."""
        return int(np.argmin([done.error for done in self.iterations]))

    @property
    def improved(self) -> bool:
        """Whether a later run was better than the first."""
        return self.best > 0


@dataclass
class Study:
    """Closed loop of a scenario whose runs are repeated in PyBullet.

    Args:
        task: scenario with its setup.
        settings: number of runs, and settings of the updates, see `twin.learning.updates`.

    Raises:
        VariationError: the scenario is no `TrackingScenario`, or its payload changes.
        TwinError, ValueError: the settings do not make a closed loop.
    """

    task: Task
    settings: Learn
    reference: Samples = field(init=False)
    plant: Robot = field(init=False)

    def __post_init__(self) -> None:
        scenario, setup = self.task.closed_loop(), self.task.setup
        robot = setup.nominal_robot()
        arms = scenario.constant_arms(robot, setup)
        self.reference = scenario.of_motion().reference(robot, setup.sampling(scenario.needs))
        self.plant, self._model = setup.with_plant_changes(arms.plant), setup.model_of(arms)

    def learn(self, method: str, signal: str, progress: Callable[[int], None]) -> Learned:
        """Repeat the runs of one combination; `progress` is called with the number of runs done."""
        from twin.physics.control.closed_loop import run_closed_loop
        from twin.physics.engine.simulation import Simulation
        from twin.studies.learning.learning_controller import LearningController, learn

        setup, law = self.task.setup, self.task.setup.control_law(self._model)
        learning = LearningController(
            law, self._update(method, law), self.reference, self.plant.name,
            signal=signal, added_to=self.settings.added_to,
        )  # fmt: skip
        learned = Learned(method, signal, learning)
        with Simulation(self.plant, time_step=setup.time_step) as simulation:

            def run(controller: LearningController) -> Log:
                return run_closed_loop(
                    simulation, controller, self.reference,
                    steps_per_period=setup.steps_per_period, sensors=setup.sensors,
                )  # fmt: skip

            for done, end in enumerate(learn(run, learning, self.settings.runs), 1):
                learned.end = end
                progress(done)
        if not learned.iterations:
            from twin.base.errors import TwinError

            raise TwinError(f"{learned.label}: {learned.end}")
        return learned

    def _update(self, method: str, law: Any) -> Update:
        from twin.studies.learning.updates import Lead, NormOptimal, input_responses

        chosen, setup = self.settings, self.task.setup
        if method == "lead":
            return Lead(setup.period, chosen.gamma, chosen.lead, chosen.cutoff)
        responses = input_responses(
            law, self._model, self.reference,
            added_to=chosen.added_to, steps_per_period=setup.steps_per_period,
        )  # fmt: skip
        square = float(np.median(np.sum(responses, axis=1))) ** 2
        return NormOptimal(responses, chosen.change * square, chosen.size * square)


def rows_of(one: Learned, unit: str) -> list[tuple[str, str, str, str]]:
    """Return the table of the errors of all runs as texts, headings first."""
    from twin.base.formatting import figure

    rows = [("run", f"motors [{unit}]", f"arm [{unit}]", "")]
    for k, done in enumerate(one.iterations):
        sides = ((done.motor, done.motor_max), (done.arm, done.arm_max))
        motors, arm = (f"{figure(_rms(each))} / {figure(largest)}" for each, largest in sides)
        rows.append((str(k), motors, arm, "best" if k == one.best else ""))
    return rows


def _rms(each: NDArray) -> float:
    """Return the root mean square of those of the joints (n,)."""
    return float(np.sqrt(np.mean(each**2)))


def draw(found: Sequence[Learned], title: str, unit: str, path: Any) -> None:
    """Draw the errors of motors and arm over the runs, on a logarithmic scale."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from twin.base.formatting import literal

    picture = Figure(figsize=(10.0, 4.4), layout="constrained")
    FigureCanvasAgg(picture)
    picture.suptitle(literal(title), fontweight="bold")
    for axes, side in zip(picture.subplots(1, 2, sharey=True), ("motor", "arm"), strict=True):
        for one in found:
            errors = [_rms(getattr(done, side)) for done in one.iterations]
            axes.semilogy(
                range(len(errors)), errors, marker="o", markersize=4, label=f"learned by {one.label}"
            )
        axes.set_title(f"error of the {'motors' if side == 'motor' else 'arm'}, RMS", fontsize=10)
        axes.set_xlabel("run")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(True, which="both", color="#ddd", linewidth=0.5)
    picture.axes[0].set_ylabel(f"[{unit}]")
    handles, labels = picture.axes[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    picture.savefig(path, dpi=110, format="png")
