"""`irb-twin learn`: repeat a motion, and learn a correction of its reference from run to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import controllers
from scenarios.options import option, output_file, section
from scenarios.shell.output import Files, apart, console, counted, print_to_stderr
from scenarios.shell.parser import Call, Command, count
from scenarios.shell.settings import LAWS, LawSettings, changes_option, tasks_of
from scenarios.studies.sweeps.command import BESIDES, require_one_scenario, scenario_argument
from twin.base.errors import VariationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scenarios.running.registry import Task
    from twin.data.logs.log import Log
    from twin.physics.robot.robot import Robot
    from twin.physics.trajectories.sampling import Samples
    from twin.studies.learning.learning_controller import Iteration, LearningController, Update


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
        VariationError: the scenario is no `TrackingScenario`, its payload changes, or its tool is pushed.
        TwinError, ValueError: the settings do not make a closed loop.
    """

    task: Task
    settings: Learn
    reference: Samples = field(init=False)
    plant: Robot = field(init=False)

    def __post_init__(self) -> None:
        scenario, setup = self.task.closed_loop(), self.task.setup
        robot = setup.nominal_robot()
        if scenario.adapted(setup, robot).environment is not None:
            raise VariationError("learning is for an arm that nothing pushes and that touches nothing")
        arms = scenario.constant_arms(robot, setup)
        self.reference = scenario.of_motion().reference(robot, setup.sampling(scenario.needs))
        self.plant, self._model = setup.with_plant_changes(arms.plant), setup.model_of(arms)

    def learn(self, method: str, signal: str, progress: Callable[[int], None]) -> Learned:
        """Repeat the runs of one combination; `progress` is called with the number of runs done."""
        from twin.data.logs.closed_loop import run_closed_loop
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
    from twin.base.formatting import literal
    from twin.base.notebook import Plot

    picture = Plot(figsize=(10.0, 4.4), layout="constrained")
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


UPDATE = "update of the input"
ERRORS = "RMS / largest error of all joints in each run"


class Learn(Command):
    """Repeat the motion of a scenario in PyBullet, and correct its reference after each run.

    The correction is learned from the error of the run before, either by the error some milliseconds later
    (lead), or as the input for which a model predicts the smallest error (optimal). The error is that of the
    motors, as a real arm measures it, or that of the arm behind the springs. Each method is combined with
    each signal.

    Learning ends after the second rise of the error in a row. --out writes the best input. With the same
    settings, `irb-twin run SCENARIO --learned FILE` applies it and checks the run. `irb-twin egm replay`
    sends it to a robot.

    Exit status: 0 a later run was better than the first; 1 none was, or a file could not be written; 2 wrong
    use.
    """

    usage = "irb-twin learn SCENARIO [options]"
    examples = """examples:
  irb-twin learn joint_tracking --controller pd --drives rigid --runs 5
  irb-twin learn joint_tracking --robot irb1400 --drives elastic --payload 5 --model-payload 0 \\
      --controller cascade --method lead optimal --signal motor arm --picture runs.png
  irb-twin learn joint_tracking --controller pd --out learned.npz
  irb-twin run joint_tracking --controller pd --learned learned.npz
"""
    names_after = 0
    besides = (*BESIDES, "learned", "push", "surface")

    scenarios: tuple[str, ...] = scenario_argument()
    controller: str = option(
        "computed_torque", f"controller: {', '.join(controllers.NAMES)}, or a class of yours", "NAME"
    )
    method: tuple[Literal["lead", "optimal"], ...] = option(
        ("lead",), "updates: lead, optimal (default lead)", "NAME", group=UPDATE
    )
    signal: tuple[Literal["motor", "arm"], ...] = option(
        ("motor",), "errors to learn from: motor, arm (default motor)", "NAME"
    )
    runs: int = option(
        8, "number of runs, with the first one, which has no input", "N", read=partial(count, least=2)
    )
    added_to: Literal["reference", "acceleration"] = option(
        "reference",
        "add the input to the reference with its derivatives, or to its acceleration alone",
        flag="--input",
    )
    gamma: float = option(0.9, "lead: share of the error that is added", "SHARE")
    lead: float = option(0.016, "lead: time by which the error is ahead of the input, in s", "SECONDS")
    cutoff: float = option(20.0, "lead: cut-off of the low-pass filter, in Hz; inf for none", "HZ")
    change: float = option(
        1.0,
        "optimal: weight of the input's change, relative to that of the error it causes at rest",
        "WEIGHT",
    )
    size: float = option(0.03, "optimal: weight of the input itself, in the same form", "WEIGHT")
    out: Path | None = output_file(".npz", "write the best input, for irb-twin run --learned", group="files")
    picture: Path | None = output_file(".png", "plot the errors over the runs")
    laws: LawSettings = section(LawSettings, LAWS)
    changes: tuple[str, ...] = changes_option()

    def run(self, call: Call) -> int:
        """Repeat the runs of each combination, and print their errors."""
        scenario = require_one_scenario(call.scenarios, "before all options")
        (task,) = tasks_of(call.settings, scenario, [self.controller], self.laws, self.changes)

        from scenarios.report.documents import plain_table
        from twin.physics.robot.units import caption_unit

        study = Study(task, self)
        combinations = list(product(dict.fromkeys(self.method), dict.fromkeys(self.signal)))
        found = self._learned(study, combinations)

        unit = caption_unit(study.plant.joint_kinds)
        title = f"{scenario.name} on {found[0].learning.robot} under {controllers.label(self.controller)}"
        files = Files()  # before anything is printed: the reader may close the pipe
        for one, path in zip(found, self._paths(found), strict=True):
            if one.improved:
                files.write(path, one.learning.best.save)
        files.write(self.picture, partial(draw, found, title, unit))
        page = console()
        page.print(title, f"{ERRORS}; the input is added to the {self.added_to}", sep="\n")
        for one in found:
            page.print(f"\nlearned by {one.label}", plain_table(rows_of(one, unit)), sep="\n")
            page.print(_sentence(one), soft_wrap=True)
        return 0 if files.name(page) and all(one.improved for one in found) else 1

    def _learned(self, study: Study, combinations: Sequence[tuple[str, str]]) -> list[Learned]:
        """Return the results of all combinations, with progress on standard error."""
        print_to_stderr(f"{self.runs} runs of {len(study.reference.t)} samples in PyBullet per combination")
        found = []
        with counted("learning", self.runs * len(combinations)) as update:
            for k, (method, signal) in enumerate(combinations):
                before = k * self.runs
                found.append(study.learn(method, signal, lambda done, before=before: update(before + done)))
        return found

    def _paths(self, found: list[Learned]) -> Sequence[Path | None]:
        """Return the file of each result; `None` if none was requested."""
        if self.out is None or len(found) == 1:
            return [self.out] * len(found)
        return apart(self.out, [(one.method, one.signal) for one in found])


def _sentence(one: Learned) -> str:
    """Return what a combination reached."""
    errors = [done.error for done in one.iterations]
    share = errors[one.best] / errors[0] if errors[0] > 0 else 1.0
    reached = (
        f"run {one.best} is the best, with {share:.3g} of the first error"
        if one.improved
        else "no run is better than the first, which had no input"
    )
    return f"{one.label}: {reached}" + (f"; {one.end}" if one.end else "")
