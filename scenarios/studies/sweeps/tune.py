"""`irb-twin tune`: search for gains that pass for all varied parameters, with the least error."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import controllers
from scenarios.options import argument, option, output_file, section
from scenarios.shell.output import Files, console, counted, print_to_stderr
from scenarios.shell.parser import Call, Command, count
from scenarios.shell.settings import LAWS, LawSettings, limit_option, limits_of
from scenarios.studies.sweeps.command import (
    BESIDES,
    MEANS,
    MeansOptions,
    design_option,
    experiments,
    print_python_cost,
    require_figures,
    require_one_scenario,
    samples_option,
    scenario_argument,
)
from twin.base.errors import WrongUse

if TYPE_CHECKING:
    from scenarios.studies.sweeps.tuning import TuningTask


class Tune(Command):
    """Find gains of a controller with which a scenario passes for all random draws of the varied parameters.

    Gains with fewer failing runs are better. Among gains with equally many failing runs, those with the
    smaller error or torque are better. The default and the tuned gains are then compared on the same draws,
    and on fresh draws. The worst fresh run of each is repeated in PyBullet.

    Each gain is searched from a tenth to ten times its default by differential evolution; a vector is scaled
    by one factor for all joints. Tuned gains are the same in all draws. Default gains may differ between
    draws: a controller computes them from its model, which knows the payload unless --model-payload is given.

    Exit status: 0 the search finished, whether it found better gains or not; 1 a file could not be written,
    or PyBullet disagrees with a worst run; 2 wrong use. Ctrl-C ends the search at once, and nothing is
    written.
    """

    usage = "irb-twin tune CONTROLLER SCENARIO [--vary NAME=TEXT ...] [options]"
    examples = """examples:
  irb-twin tune pd joint_tracking --vary payload=0:6 --out gains.toml
  irb-twin tune pd joint_tracking --drives rigid --delay 3 --vary payload=0:6 drives.coulomb=+-50%
  irb-twin tune pid pose_path --vary model.mass=+-10% --gains Kp=0.5:5 Kd --of mean
  irb-twin tune ./my.py:Law joint_tracking --vary payload=0:6 --minimise rms_torque --limit joint_error=0.05
"""
    names_after = 1
    besides = BESIDES

    law: str | None = argument(f"{', '.join(controllers.NAMES)}, or a class of yours", "CONTROLLER", None)
    scenarios: tuple[str, ...] = scenario_argument()
    vary: tuple[str, ...] = option(
        (),
        "parameters to vary, as in irb-twin sweep: payload=0:6, drives.coulomb=+-50%:each, delay=0,3",
        "NAME=TEXT",
        group="variation",
    )
    samples: int = samples_option(100, "number of random draws; every set of gains is run on each")
    design: Literal["latin", "sobol", "random"] = design_option()
    fresh: int = option(
        1000,
        "number of fresh draws, from the next seed, on which default and tuned gains are compared",
        "N",
        read=count,
    )
    worst: int = option(
        1, "repeat the K worst fresh runs of each in PyBullet", "K", read=partial(count, least=0)
    )
    minimise: str = option(
        "joint_error",
        "quantity to minimise, one that --limit accepts: an error in rad or m, a torque relative to its "
        "limit, or a metric of the scenario",
        "FIGURE",
        group="objective",
    )
    of: Literal["worst", "mean"] = option("worst", "minimise its worst value or its mean over the runs")
    limit: tuple[str, ...] = limit_option()
    gains: tuple[str, ...] = option(
        (),
        "gains to search, and their ranges: Kp=0.5:20; the range of a vector is that of a factor on its "
        "default (default: all gains, from a tenth to ten times the default)",
        "NAME[=RANGE]",
        group="search",
    )
    evaluations: int | None = option(
        None,
        "number of sets of gains to try (default 120 for each searched gain)",
        "N",
        read=partial(count, least=5),
    )
    means: MeansOptions = section(MeansOptions, MEANS)
    out: Path | None = output_file(
        ".toml", "write the tuned gains, for irb-twin run --settings", group="files"
    )
    json: Path | None = output_file(".json", "write all values")
    laws: LawSettings = section(LawSettings, LAWS)
    changes: tuple[str, ...] = ()

    def run(self, call: Call) -> int:
        """Search for gains, compare them with the default gains, and report the result."""
        task, pool_of = self._task(call), self.means.pool
        from scenarios.report.documents import write_document
        from scenarios.studies.sweeps.plan import Law, SweepPlan, nominal_run
        from scenarios.studies.sweeps.summary import complaints, worst_report
        from scenarios.studies.sweeps.tuning import (
            Result,
            chosen_gains,
            command,
            compared,
            conclusions,
            document,
            gains_text,
            report,
        )  # fmt: skip
        from twin.physics.engine.client import require_engine
        from twin.studies.sweeps.tuning import EVALUATIONS, tuned

        gains, engine = chosen_gains(task.law, self.gains), task.law.scenario.needs_engine
        if engine or (self.worst and task.fresh_design is not None):
            require_engine("a twin.ControlLaw is tuned without it with --worst 0")
        points, design = task.points, task.fresh_design
        fresh = None if design is None else task.fresh_points(design)
        sets = self.evaluations or EVALUATIONS * len(gains)
        runs = (sets + 1) * len(points.values)
        compared_runs = 2 * (len(points.values) + (0 if fresh is None else len(fresh.values)))
        print_to_stderr(
            f"{sets} sets of {len(gains)} gain{'s' * (len(gains) != 1)} x {len(points.values)} runs, "
            f"then {compared_runs} runs to compare"
        )
        law = Law(task.law.scenario.setup.controller, task.law.scenario, points)
        plan = SweepPlan(task.scenario, (law,), task.design, task.limits)
        print_python_cost(law, nominal_run(plan, law).seconds, runs + compared_runs)
        with counted(f"tuning {task.law.scenario.setup.controller}", runs + compared_runs) as update:
            with pool_of(engine) as pool:
                tuning = tuned(
                    task.law, points, gains,
                    minimise=task.minimise, of=task.of, limits=task.limits, evaluations=self.evaluations,
                    seed=task.design.seed, engine=engine, pool=pool, progress=update,
                )  # fmt: skip
            on_draws = compared(task, tuning, points, task.design, pool_of, lambda done: update(runs + done))
            on_fresh = None
            if design is not None and fresh is not None:
                before = runs + 2 * len(points.values)
                on_fresh = compared(
                    task, tuning, fresh, design, pool_of, lambda done: update(before + done), self.worst
                )

        sentences = list(conclusions(task, tuning, on_draws, on_fresh))
        result = Result(task, tuning, on_draws, on_fresh, sentences)
        files = Files()  # before anything is printed: the reader may close the pipe
        if self.out is not None:
            words = gains_text(result, self.out)
            files.write(self.out, lambda path: path.write_text(words, encoding="utf-8"))
        files.write(self.json, partial(write_document, document=document(result)))
        page = console()
        page.print(*report(result), sep="\n")
        repeated = [] if on_fresh is None else [on_fresh.default.found, on_fresh.tuned.found]
        for found in repeated:
            page.print(*worst_report(found), sep="\n", soft_wrap=True)
        complete = files.name(page)
        file = self.out if complete else None
        page.print(f"With the tuned gains: {command(task, tuning, file)}", soft_wrap=True)
        broken = complaints(repeated)
        for sentence in broken:
            print_to_stderr(sentence)
        return 0 if complete and not broken else 1

    def _task(self, call: Call) -> TuningTask:
        """Return the tuning task.

        Raises:
            WrongUse, TwinError, ValueError: the options do not make a valid task.
        """
        from scenarios.studies.sweeps.plan import variations
        from scenarios.studies.sweeps.tuning import TunedLaw, TuningTask
        from twin.studies.sweeps.design import Design

        if self.law is None:
            raise WrongUse(
                "name a controller and a scenario before all options: controllers are "
                f"{', '.join(controllers.NAMES)}"
            )
        controllers.require_known(self.law)
        scenario = require_one_scenario(call.scenarios, "after the controller")
        limited = limits_of(self.limit, metrics=True)
        errors = [name for name in limited if name.endswith("error")]
        if self.minimise in ("rms_torque", "cubic_torque") and not errors:
            raise WrongUse(
                f"--minimise {self.minimise}: a hanging arm needs the least torque; limit an error, too, as "
                "--limit joint_error=0.01"
            )
        (experiment,) = experiments(self, call, scenario, [self.law], {self.minimise, *limited})
        require_figures([experiment], {"--limit": limited, "--minimise": [self.minimise]})
        law = TunedLaw(experiment)
        varied = variations(self.vary, experiment) if self.vary else ()
        design = Design(varied, self.samples, self.design, law.scenario.setup.seed)
        return TuningTask(scenario, law, design, limited, self.minimise, self.of, self.fresh)
