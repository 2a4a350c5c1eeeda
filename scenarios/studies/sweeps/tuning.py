"""Tuning of a scenario's controller, whose gains are searched as fixed settings, and its report.

In a sweep, `law.Kp` is a factor on gains that the controller may compute from the payload of each draw.
Gains in a settings file are the same for all payloads.  So a factor here multiplies the gains that the
controller computes for nominal values, and the result is used in all draws.

The default gains and the tuned gains are then compared on the same draws: those of the search, and fresh
ones.  The report has tables and sentences for the terminal, a settings file with the gains, and JSON.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

import controllers
from scenarios.report.documents import plain_table
from scenarios.running.provenance import provenance
from scenarios.running.registry import Entry, Task
from scenarios.running.runs import Run, repeat_command
from scenarios.studies.sweeps.plan import (
    SEED,
    Law,
    SweepPlan,
    nominal_run,
    points_of,
    run_all,
    worst_of,
)
from scenarios.studies.sweeps.scenario_experiment import LAW, ScenarioExperiment, varied
from scenarios.studies.sweeps.summary import (
    Findings,
    by_name,
    findings,
    law_document,
    percent,
    quantity,
    title,
)
from twin.base.errors import VariationError, WrongUse, printable
from twin.base.formatting import figure
from twin.physics.robot.quantities import unknown
from twin.studies.sweeps.design import Design, Points, parse_variation
from twin.studies.sweeps.trial import Trial
from twin.studies.sweeps.tuning import Gain, Of, Tuning, judged

if TYPE_CHECKING:
    from scenarios.studies.sweeps.plan import PoolOf


TIMES = 10.0
"""Factor between the default of a gain and each end of its search range."""


class TunedLaw:
    """Scenario as an `Experiment` in which the settings of the controller vary, as `irb-twin run` takes them.

    A name such as `law.Kp` is a factor on all joints for a vector, and the value for a scalar.  All other
    names are those of the scenario.

    Args:
        scenario: the scenario with its controller, and the settings that do not vary.
    """

    def __init__(self, scenario: ScenarioExperiment) -> None:
        self.scenario = scenario
        self.numbers = scenario.law_numbers()

    def nominal(self, name: str) -> float:
        """Return a nominal value, see `twin.sweeps.trial.Experiment`."""
        if not name.startswith(LAW):
            return self.scenario.nominal(name)
        value = self._number(name)
        return value if isinstance(value, float) else 1.0

    def trial(self, values: Mapping[str, float]) -> Trial:
        """Return the trial of these values, see `twin.sweeps.trial.Experiment`."""
        return self.scenario.trial_of(self.task_of(values))

    def task_of(self, values: Mapping[str, float]) -> Task:
        """Return the task of one run, as `irb-twin run` takes it."""
        gains = {name: value for name, value in values.items() if name.startswith(LAW)}
        task = self.scenario.task_of({name: values[name] for name in values if name not in gains})
        settings = dict(task.setup.law_settings) | self.settings(gains)
        return task.with_setup(law_settings=tuple(settings.items()))

    def settings(self, gains: Mapping[str, float]) -> dict[str, Any]:
        """Return the settings of the controller with these gains, by name.

        Raises:
            UnknownNameError: the controller has no such setting.
        """
        return {name.removeprefix(LAW): varied(self._number(name), value) for name, value in gains.items()}

    def _number(self, name: str) -> float | np.ndarray:
        """Return the nominal value of the setting that a name refers to."""
        setting = name.removeprefix(LAW)
        if setting not in self.numbers:
            raise unknown(setting, f"controller {self.scenario.setup.controller!r}", self.numbers)
        return self.numbers[setting]


def chosen_gains(law: TunedLaw, words: Sequence[str]) -> tuple[Gain, ...]:
    """Return the gains to search.

    Args:
        law: the controller with its scenario.
        words: gains with or without a range, as `Kp=0.5:20` or `Kp`; empty for all positive settings, without
            the bandwidth if there are others.

    Raises:
        UnknownNameError: the controller has no such setting.
        VariationError: a range is invalid, empty or contains 0; a gain is given twice.
        WrongUse: there is no gain to search.
    """
    if not law.numbers:
        raise WrongUse(f"{law.scenario.setup.controller} has no numeric setting: there is nothing to tune")
    if not words:
        positive = [name for name, value in law.numbers.items() if np.all(np.asarray(value) > 0)]
        words = [name for name in positive if name != "bandwidth"] or positive
        if not words:
            raise WrongUse(
                f"none of {', '.join(law.numbers)} is above 0 by default: name the gains to tune with their "
                "ranges, as --gains NAME=0.1:10"
            )
    return tuple(_gain(law, word) for word in words)


def _gain(law: TunedLaw, word: str) -> Gain:
    """Return the gain of one argument."""
    name, sign, text = word.partition("=")
    name = LAW + name.removeprefix(LAW)
    nominal = law.nominal(name)
    if sign:
        low, high = _range(name, text)
    elif nominal > 0:
        low, high = nominal / TIMES, nominal * TIMES
    else:
        raise VariationError(f"{name} is {nominal:g} by default: give its range, as {name}=0.1:10")
    return Gain(name, low, high)


def _range(name: str, text: str) -> tuple[float, float]:
    variation = parse_variation(name, text)
    if variation.kind not in ("uniform", "log-uniform"):
        raise VariationError(f"cannot search {name} in {text!r}: expected a range, as 0.1:10")
    low, high = variation.numbers
    if not low > 0:
        raise VariationError(f"cannot search {name} in {text!r}: the range must be above 0")
    return low, high


DEFAULT, TUNED = "default gains", "tuned gains"


@dataclass(frozen=True)
class TuningTask:
    """Task of a tuning.

    Attributes:
        scenario: the scenario to run.
        law: the controller whose gains are searched, with its scenario.
        design: sampling of the draws for the search.
        limits: additional limits of quantities.
        minimise: quantity to minimise.
        of: whether its worst value or its mean is minimised.
        fresh: number of fresh draws.
    """

    scenario: Entry
    law: TunedLaw
    design: Design
    limits: dict[str, float]
    minimise: str
    of: Of
    fresh: int

    @property
    def points(self) -> Points:
        """Draws for the search."""
        return points_of(self.law.scenario, self.design)

    @property
    def fresh_design(self) -> Design | None:
        """Sampling of the fresh draws, with the next seed; `None` if nothing is random."""
        design = dataclasses.replace(self.design, samples=self.fresh, seed=self.design.seed + 1)
        return design if design.is_random or SEED in self.points.names else None

    def fresh_points(self, design: Design) -> Points:
        """Return the fresh draws, which have fresh measurement noise, too."""
        points, before = points_of(self.law.scenario, design), self.points
        if SEED in points.names and SEED not in {one.name for one in design.variations}:
            points.values[:, points.names.index(SEED)] += before.draw[-1] + 1
        return points

    def tuned(self, tuning: Tuning) -> ScenarioExperiment:
        """Return the scenario with the tuned gains."""
        scenario = self.law.scenario
        return ScenarioExperiment(
            self.law.task_of(tuning.values), tool_error=scenario.tool_error, loads=scenario.loads,
            engine=scenario.engine,
        )  # fmt: skip


class Side(NamedTuple):
    """Result of one set of gains on some draws.

    Attributes:
        found: the evaluation of its runs.
        failing: number of failing runs.
        figure: the minimised quantity, over its runs.
    """

    found: Findings
    failing: int
    figure: float


class Compared(NamedTuple):
    """Default gains and tuned gains on the same draws."""

    plan: SweepPlan
    default: Side
    tuned: Side


def compared(
    task: TuningTask, tuning: Tuning, points: Points, design: Design, pool_of: PoolOf,
    progress: Callable[[int], None], repeats: int = 0,
) -> Compared:  # fmt: skip
    """Run the default gains and the tuned gains on the same draws.

    Args:
        task: the tuning task.
        tuning: the result of the search.
        points: the draws.
        design: sampling of these draws.
        pool_of: function that opens the pool of the runs, see `run_all`.
        progress: function that is called with the number of finished runs.
        repeats: number of the worst runs of each that are repeated in PyBullet.
    """
    laws = (Law(DEFAULT, task.law.scenario, points), Law(TUNED, task.tuned(tuning), points))
    plan = SweepPlan(task.scenario, laws, design, task.limits, task.minimise)
    nominals = [nominal_run(plan, law) for law in laws]
    swept = run_all(plan, nominals, pool_of, progress)
    sides = [
        Side(findings(one, worst_of(law, one, repeats)), *judged(one.table, task.minimise, task.of))
        for law, one in zip(laws, swept, strict=True)
    ]
    return Compared(plan, *sides)


class Result(NamedTuple):
    """Result of a tuning, as it is reported.

    Attributes:
        task: the tuning task.
        tuning: the result of the search.
        on_draws: both sets of gains on the draws of the search.
        on_fresh: both sets of gains on fresh draws; `None` if nothing is random.
        sentences: the conclusions.
    """

    task: TuningTask
    tuning: Tuning
    on_draws: Compared
    on_fresh: Compared | None
    sentences: Sequence[str]


FIGURES = ("joint_error", "rms_error", "tool_error", "rms_torque")
"""Quantities that are reported besides the one that is minimised."""


def report(result: Result) -> Iterator[RenderableType]:
    """Yield the gains, the results of default and tuned gains, and the conclusions."""
    task, tuning, on_draws, on_fresh, sentences = result
    setup = task.law.scenario.setup
    yield Text.assemble(
        "\n", (f"{setup.controller} in {task.scenario.name}", "bold"), f": {task.scenario.title}"
    )
    yield from (Text(line, "dim") for line in task_lines(task))
    yield ""
    yield _gains(task, tuning)
    draws = on_draws.plan.design.draws
    yield f"On the {draws} draw{'s' * (draws != 1)} of the search: median / worst"
    yield _figures(on_draws, task.minimise, interval=False)
    if on_fresh is not None:
        design = on_fresh.plan.design
        yield f"On {design.draws} fresh draws, seed {design.seed}: median / worst"
        yield _figures(on_fresh, task.minimise, interval=True)
    yield from (Text(sentence) for sentence in sentences)


def task_lines(task: TuningTask) -> list[str]:
    """Return lines that describe the robot, the draws and the objective of a task."""
    setup, design = task.law.scenario.setup, task.design
    varied = " ".join(f"{one.name}={one.text}" for one in design.variations) or "nothing"
    own = ", of all checks of the scenario" if task.law.scenario.further_checks else ""
    limits = "".join(f", {name} at most {value:g}" for name, value in task.limits.items())
    return [
        f"{setup.robot}, {setup.drives} drives, varied: {varied}",
        f"{design.draws} draws, {design.kind} design, seed {design.seed}",
        f"objective: passing runs{own}{limits}, then the least {task.of} {quantity(task.minimise)}",
    ]


def _gains(task: TuningTask, tuning: Tuning) -> Table:
    """Return a table of the searched gains, their ranges, defaults and tuned values."""
    rows: list[tuple[str, ...]] = [("gain", "from", "to", DEFAULT, TUNED)]
    for gain, default, best in zip(tuning.gains, tuning.default.values, tuning.best.values, strict=True):
        name = gain.name.removeprefix(LAW)
        times = " times" if isinstance(task.law.numbers[name], np.ndarray) else ""
        rows.append((name, *(figure(value) + times for value in (gain.low, gain.high, default, best))))
    return plain_table(rows)


def _figures(compared: Compared, minimised: str, *, interval: bool) -> Table:
    """Return a table of shares and quantities of both sets of gains."""
    columns: list[dict[str, str]] = []
    for found in (compared.default.found, compared.tuned.found):
        share, spreads = found.share, {one.figure: one for one in found.spreads}
        column = {"passing runs": percent(share.share)}
        if interval:
            column["95 % confidence interval"] = f"{percent(share.low)} to {percent(share.high)}"
        for one in (spreads[name] for name in (minimised, *FIGURES) if name in spreads):
            column[quantity(one.figure)] = f"{figure(one.median)} / {figure(one.worst):>8}"
        columns.append(column)
    return by_name((DEFAULT, TUNED), columns, "")


WORTH = 0.01
"""Relative improvement of the minimised quantity below which tuning does not help."""

ROUNDING = 1e-10
"""Errors below this are rounding errors, in [rad] and [m]."""


def conclusions(
    task: TuningTask, tuning: Tuning, on_draws: Compared, on_fresh: Compared | None
) -> Iterator[str]:
    """Yield sentences on the benefit of the tuned gains, and on their weaknesses.

    Args:
        task: the tuning task.
        tuning: the result of the search.
        on_draws: both sets of gains on the draws of the search.
        on_fresh: both sets of gains on fresh draws, if anything is random.
    """
    judged = on_fresh or on_draws
    where = "on fresh draws" if on_fresh else "on the only draw"
    yield from _benefit(task, judged, where, on_draws)
    if not helps(judged.default, judged.tuned):
        yield from _instead(task, tuning, on_draws.default)
    yield from _failing(tuning, on_draws, on_fresh)
    for gain, end in tuning.at_ends:
        name = gain.name.removeprefix(LAW)
        yield (
            f"{name} is at the end of its range, {end:g}: a wider range may give better gains (--gains "
            f"{name}={gain.low / (10 if end == gain.low else 1):g}:"
            f"{gain.high * (10 if end == gain.high else 1):g}), or the scenario lacks what limits such "
            "gains, for example noise or a delay."
        )
    if not tuning.settled:
        yield (
            f"The search had not converged after {tuning.evaluations} sets of gains: more --evaluations may "
            "find better gains."
        )


def helps(default: Side, tuned: Side, least: float = WORTH) -> bool:
    """Return whether tuned gains fail less often, or as often with a figure smaller by more than `least`."""
    if tuned.failing != default.failing:
        return tuned.failing < default.failing
    return tuned.figure < default.figure * (1.0 - least)


def _benefit(task: TuningTask, judged: Compared, where: str, on_draws: Compared) -> Iterator[str]:
    """Yield a sentence that compares the tuned gains with the default gains."""
    default, tuned = judged.default, judged.tuned
    what = f"{task.of} {title(task.minimise)}"
    unit = quantity(task.minimise).removeprefix(title(task.minimise)).strip(" []")
    runs = len(tuned.found.swept.table)
    fail = f"{tuned.failing} instead of {default.failing} of {runs} fail"
    values = f"{figure(tuned.figure)} instead of {figure(default.figure)} {unit}".strip()
    if task.minimise.endswith("error") and default.failing == 0 and default.figure < ROUNDING:
        yield f"With default gains the {what} is a rounding error: tuning does not help."
    elif not helps(default, tuned):
        if helps(on_draws.default, on_draws.tuned):
            yield (
                "Tuning does not help: tuned gains are better on the draws of the search, but not "
                f"{where} ({fail}, {what} {values}); more --samples cover more cases."
            )
        else:
            yield (
                f"Tuning does not help: no gains are better than the default gains ({where} "
                f"{fail}, {what} {values})."
            )
    elif tuned.failing < default.failing:
        yield (
            f"Tuning helps: {where} {percent(tuned.found.share.share)} of the runs pass instead of "
            f"{percent(default.found.share.share)}; {what} {values}."
        )
    else:
        part = f", {tuned.figure / default.figure:.2g} of it" if 0 < default.figure < float("inf") else ""
        yield f"Tuning helps: {where} the {what} is {values}{part}."


def _instead(task: TuningTask, tuning: Tuning, default: Side) -> Iterator[str]:
    """Yield a hint to search the bandwidth, if the default gains differ between draws."""
    derived = (tuning.default.failing, tuning.default.figure) != (default.failing, default.figure)
    if derived and "bandwidth" in task.law.numbers:
        yield (
            "Tuned gains are the same in all draws, but the controller computes its default gains from the "
            "model of each draw: --gains bandwidth tunes them without fixing them."
        )


def _failing(tuning: Tuning, on_draws: Compared, on_fresh: Compared | None) -> Iterator[str]:
    """Yield sentences on how many runs pass with the tuned gains."""
    runs = len(on_draws.tuned.found.swept.table)
    failing = on_draws.tuned.failing
    if failing == runs:
        yield f"With all gains that were tried, all {runs} runs of the search fail."
    elif failing:
        yield (
            f"No gains that were tried pass all {runs} runs of the search: with the tuned gains "
            f"{failing} fail."
        )
    if on_fresh is None:
        return
    share, fresh = on_fresh.tuned.found.share, on_fresh.tuned
    if not failing and fresh.failing:
        yield (
            f"With the tuned gains all runs of the search pass, but {fresh.failing} of "
            f"{len(fresh.found.swept.table)} fresh runs fail: use more --samples."
        )
    if share.share > 0:
        yield f"With 95 % confidence, the tuned gains pass in at least {percent(share.low)} of all draws."


FORMAT = 2
"""Version of the JSON document; it changes if the meaning of an entry changes."""


def command(task: TuningTask, tuning: Tuning, file: Path | None) -> str:
    """Return the command that runs the scenario with the tuned gains, from the file if there is one."""
    tuned = task.law.task_of(tuning.values)
    if file is None:
        return repeat_command(Run(tuned))
    words = repeat_command(Run(tuned.with_setup(law_settings=())))
    return f"{words} --settings {shlex.quote(str(file))}"


def gains_text(result: Result, file: Path) -> str:
    """Return the settings of the controller with the tuned gains, and the task and conclusions as comments.

    Args:
        result: the result of the tuning.
        file: final path of the file, for the command in the comments.
    """
    task, tuning = result.task, result.tuning
    setup = task.law.task_of(tuning.values).setup
    comments = [
        f"Gains of {setup.controller}, tuned by irb-twin tune for {task.scenario.name}",
        *task_lines(task),
        *result.sentences,
        command(task, tuning, file),
    ]
    label = controllers.label(setup.controller)
    lines = [f"# {printable(line)}" for line in comments]
    lines += ["", f"[{label if re.fullmatch('[A-Za-z0-9_-]+', label) else json.dumps(label)}]"]
    lines += [f"{name} = {_value(value)}" for name, value in setup.law_settings]
    return "\n".join(lines) + "\n"


def document(result: Result) -> dict[str, Any]:
    """Return the task, the result, and all values of both sets of gains for JSON."""
    task, tuning, on_draws, on_fresh, sentences = result
    setup = task.law.task_of(tuning.values).setup
    return {
        "format": FORMAT,
        "provenance": provenance(),
        "scenario": task.scenario.name,
        "controller": setup.controller,
        "varied": [{"name": one.name, "text": one.text} for one in task.design.variations],
        "limits": task.limits,
        "minimised": {"figure": task.minimise, "of": task.of},
        "gains": [
            gain._asdict() | {"default": default, "tuned": best}
            for gain, default, best in zip(
                tuning.gains, tuning.default.values, tuning.best.values, strict=True
            )
        ],
        "settings": dict(setup.law_settings),
        "evaluations": tuning.evaluations,
        "settled": tuning.settled,
        "at_ends": [gain.name for gain, _ in tuning.at_ends],
        "tuned_on": _compared(on_draws),
        "fresh": None if on_fresh is None else _compared(on_fresh),
        "conclusions": list(sentences),
        "command": command(task, tuning, None),
    }


def _compared(compared: Compared) -> dict[str, Any]:
    design = compared.plan.design
    return {
        "draws": design.draws,
        "design": design.kind,
        "seed": design.seed,
        "default": _side(compared.default),
        "tuned": _side(compared.tuned),
    }


def _side(side: Side) -> dict[str, Any]:
    return law_document(side.found) | {"failing": side.failing, "minimised": side.figure}


def _value(value: Any) -> str:
    """Format a setting as TOML."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value) if isinstance(value, (bool, str)) else repr(value)
