"""`irb-twin tune`: gains of a law that hold for all draws of what varies, and make its error small."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import controllers
from scenarios.cli.arguments import Call, Command, WrongUse, argument, count, option, output_file, section
from scenarios.cli.output import Files, console, counted, print_to_stderr
from scenarios.cli.settings import LAWS, LawSettings, limit_option
from scenarios.cli.sweep import (
    BESIDES,
    MEANS,
    MeansOptions,
    design_option,
    experiments,
    one_of_them,
    samples_option,
    scenario_argument,
)

if TYPE_CHECKING:
    from scenarios.sweeping.tuning import Task


@dataclass(frozen=True)
class Tune(Command):
    """Find gains of a control law with which a scenario holds under all random draws of what varies.

    Of those, gains with the least worst error or torque are best. Gains under which fewer runs fail are
    better; of those under which as many fail, the figure decides. Then default gains and tuned ones are run
    under the same draws, and under fresh ones, to say what it was worth; the worst fresh runs are done again
    in PyBullet.

    Gains are searched from a tenth of their default to ten times, of a vector by one factor for all joints,
    by differential evolution: an even first generation, later ones bred of the best. Tuned gains are the same
    in all draws; a law derives its default ones again where it is told what varies, as of payload unless
    there is --model-payload.

    Exit status: 0 the search was carried out, whether it helped or not; 1 a file could not be written, or
    PyBullet does otherwise than a worst run says; 2 wrong use. Ctrl-C ends it at once, and nothing is
    written.
    """

    usage = "irb-twin tune LAW SCENARIO [--vary NAME=TEXT ...] [options]"
    examples = """examples:
  irb-twin tune pd joint_tracking --vary payload=0:6 --out gains.toml
  irb-twin tune pd joint_tracking --drives rigid --delay 3 --vary payload=0:6 drives.coulomb=+-50%
  irb-twin tune pid pose_path --vary model.mass=+-10% --gains Kp=0.5:5 Kd --of mean
  irb-twin tune ./my.py:Law joint_tracking --vary payload=0:6 --minimise rms_torque --limit joint_error=0.05
"""
    names_after = 1
    besides = BESIDES

    law: str | None = argument(f"{', '.join(controllers.NAMES)}, or one of your own", "LAW", None)
    scenarios: tuple[str, ...] = scenario_argument()
    vary: tuple[str, ...] = option(
        (),
        "as in irb-twin sweep, which lists the names: payload=0:6, drives.coulomb=+-50%, delay=0,3",
        "NAME=TEXT",
        group="what varies",
    )
    samples: int = samples_option(100, "random draws, under each of which every set of gains is run")
    design: Literal["latin", "sobol", "random"] = design_option()
    fresh: int = option(1000, "draws of the next seed, under which both gains are judged", "N", read=count)
    minimise: Literal["joint_error", "rms_error", "tool_error", "rms_torque"] = option(
        "joint_error", "in rad, m, and of the drives' limits", group="what is wanted"
    )
    of: Literal["worst", "mean"] = option("worst", "its worst or its mean")
    limit: tuple[str, ...] = limit_option()
    gains: tuple[str, ...] = option(
        (),
        "what is searched, and from where to where: Kp=0.5:20, of a vector a factor on its default, of a "
        "number what it is (default: all gains, a tenth of the default to ten times)",
        "NAME[=RANGE]",
        group="the search",
    )
    evaluations: int | None = option(
        None,
        "sets of gains to try (default 120 for each gain that is searched)",
        "N",
        read=partial(count, least=5),
    )
    means: MeansOptions = section(MeansOptions, MEANS)
    out: Path | None = output_file(".toml", "write the gains, for irb-twin run --settings", group="files")
    json: Path | None = output_file(".json", "write every figure")
    laws: LawSettings = section(LawSettings, LAWS)
    changes: tuple[str, ...] = ()

    def run(self, call: Call) -> int:
        """Search, compare, write, and tell."""
        task, means = self._task(call), self.means.chosen()
        from scenarios.sweeping import tuning_report as written
        from scenarios.sweeping.summary import complaints, worst_report
        from scenarios.sweeping.tuning import chosen_gains, compared
        from scenarios.sweeping.tuning_report import conclusions, report
        from twin.sweeps.pools import pool_for
        from twin.sweeps.tuning import EVALUATIONS, tuned

        gains = chosen_gains(task.law, self.gains)
        points, design = task.points, task.fresh_design
        fresh = None if design is None else task.fresh_points(design)
        sets = self.evaluations or EVALUATIONS * len(gains)
        runs = (sets + 1) * len(points.values)
        compared_runs = 2 * (len(points.values) + (0 if fresh is None else len(fresh.values)))
        print_to_stderr(
            f"{sets} sets of {len(gains)} gain{'s' * (len(gains) != 1)} x {len(points.values)} runs, "
            f"then {compared_runs} to compare"
        )
        with counted(f"tuning {task.law.scenario.settings.controller}", runs + compared_runs) as tell:
            with pool_for(means.engine, means.workers, means.scheduler) as pool:
                tuning = tuned(
                    task.law, points, gains,
                    minimise=task.minimise, of=task.of, limits=task.limits, evaluations=self.evaluations,
                    seed=task.design.seed, engine=means.engine, pool=pool, progress=tell,
                )  # fmt: skip
            on_draws = compared(task, tuning, points, task.design, means, lambda done: tell(runs + done))
            on_fresh = None
            if design is not None and fresh is not None:
                before = runs + 2 * len(points.values)
                on_fresh = compared(
                    task, tuning, fresh, design, means, lambda done: tell(before + done), again=1
                )

        sentences = list(conclusions(task, tuning, on_draws, on_fresh))
        files = Files()  # before anything is printed: a reader may hang up
        if self.out is not None:
            gains_file = partial(written.write_gains, task=task, tuning=tuning, file=self.out)
            files.write(self.out, partial(gains_file, sentences=sentences))
        files.write(
            self.json,
            partial(
                written.write_figures,
                task=task, tuning=tuning, on_draws=on_draws, on_fresh=on_fresh, sentences=sentences,
            ),
        )  # fmt: skip
        page = console()
        page.print(*report(task, tuning, on_draws, on_fresh, sentences), sep="\n", highlight=False)
        sides = () if on_fresh is None else (on_fresh.default, on_fresh.tuned)
        for side in sides:
            page.print(*worst_report(side.found.swept, side.worst), sep="\n", highlight=False, soft_wrap=True)
        complete = files.name(page)
        file = self.out if complete else None
        page.print(
            f"With the tuned gains: {written.command(task, tuning, file)}", highlight=False, soft_wrap=True
        )
        broken = complaints([side.found for side in sides], [side.worst for side in sides], None)
        for sentence in broken:
            print_to_stderr(sentence)
        return 0 if complete and not broken else 1

    def _task(self, call: Call) -> Task:
        """Return what is to be tuned.

        Raises:
            WrongUse, TwinError, ValueError: it cannot be.
        """
        from scenarios.sweeping.plan import limits, variations
        from scenarios.sweeping.tuning import Task, TunedLaw
        from twin.sweeps.design import Design

        if self.law is None:
            raise WrongUse(
                f"name a law and a scenario, before any option: laws are {', '.join(controllers.NAMES)}"
            )
        controllers.require_known(self.law)
        scenario = one_of_them(call.scenarios, "after the law")
        limited = limits(self.limit)
        if self.minimise == "rms_torque" and not any(name.endswith("error") for name in limited):
            raise WrongUse(
                "--minimise rms_torque: an arm that hangs down needs least; limit an error, too, as --limit "
                "joint_error=0.01"
            )
        tool_error = "tool_error" in (self.minimise, *limited)
        (experiment,) = experiments(self, call, scenario, [self.law], tool_error)
        law = TunedLaw(experiment)
        varied = variations(self.vary) if self.vary else ()
        design = Design(varied, self.samples, self.design, law.scenario.settings.seed)
        return Task(scenario, law, design, limited, self.minimise, self.of, self.fresh)
