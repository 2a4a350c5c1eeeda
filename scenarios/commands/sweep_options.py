"""What `irb-twin sweep` and `irb-twin tune` have in common: one scenario, its draws, and who runs them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.running import options, registry
from scenarios.running.options import WrongUse

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario
    from scenarios.sweeping.carrying_out import Means
    from scenarios.sweeping.scenario_experiment import ScenarioExperiment

BESIDES = ("controller", "gui", "close_window")
"""Settings of every scenario that are no options here, or take several values."""


def add_scenario(parser: argparse.ArgumentParser) -> None:
    """Offer the scenario."""
    parser.add_argument(
        "scenarios", nargs="*", metavar="SCENARIO", help="name or .py file of one; before any option"
    )


def add_draws(group: Any, samples: int, each: str) -> None:
    """Offer the number of draws, and how they are spread.

    Args:
        group: of options.
        samples: draws by default.
        each: what is run under each.
    """
    group.add_argument(
        "--samples", type=options.count, default=samples, metavar="N",
        help=f"random draws, {each} (default {samples})",
    )  # fmt: skip
    group.add_argument(
        "--design", choices=("latin", "sobol", "random"), default="latin",
        help="how draws are spread: evenly, by Latin hypercubes or Sobol sequences, or independently "
        "(default latin); --seed draws others",
    )  # fmt: skip


def add_limits(group: Any) -> None:
    """Offer limits on figures."""
    group.add_argument(
        "--limit", nargs="+", action="extend", default=[], metavar="FIGURE=VALUE",
        help="a run holds if it also keeps this: joint_error, rms_error [rad], tool_error [m], rms_torque, "
        "beyond_range, speed_ratio, saturated",
    )  # fmt: skip


def chosen_limits(words: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """What they say, as `Config.limits` has it.

    Raises:
        WrongUse: there is no such figure, or no number.
    """
    if not words:
        return ()
    from scenarios.sweeping.plan import limits  # not light

    return tuple(limits(words).items())


def add_means(parser: argparse.ArgumentParser) -> Any:
    """Offer who runs the draws; returns the group of options."""
    group = parser.add_argument_group("how it is run")
    group.add_argument(
        "--engine", action="store_true", help="all in PyBullet, 30 to 40 times slower, and not compiled"
    )
    group.add_argument(
        "--workers", type=options.count, metavar="N",
        help="processes on this machine (default: threads; with --engine a process a core)",
    )  # fmt: skip
    group.add_argument("--scheduler", metavar="tcp://HOST:PORT", help="processes of a Dask cluster")
    return group


def means(given: argparse.Namespace, keep: Path | None = None, resume: bool = False) -> Means:
    """Who runs the draws.

    Raises:
        WrongUse: two were named.
    """
    from scenarios.sweeping.carrying_out import Means

    if given.workers and given.scheduler:
        raise WrongUse("--workers are processes of this machine, --scheduler has its own: give one of them")
    return Means(given.engine, given.workers, given.scheduler, keep, resume)


def one(scenarios: Sequence[Scenario], where: str) -> Scenario:
    """The one scenario that was named.

    Args:
        scenarios: those that were.
        where: its name is to stand, as "before any option".

    Raises:
        WrongUse: there is none, or are several.
        TwinError: it does not load.
    """
    if len(scenarios) != 1:
        known = ", ".join(registry.titles())
        raise WrongUse(f"name one scenario {where}, got {len(scenarios)}: known are {known}")
    if scenarios[0].fault is not None:
        raise scenarios[0].fault
    return scenarios[0]


def experiments(
    given: argparse.Namespace, scenario: Scenario, laws: list[str], tool_error: bool
) -> list[ScenarioExperiment]:
    """What is run, one a law.

    Args:
        given: the settings.
        scenario: what is followed.
        laws: under which control laws; empty for the scenario's.
        tool_error: whether the tool's error is asked for.
    """
    from scenarios.running.repeat import scenario_word
    from scenarios.sweeping.scenario_experiment import ScenarioExperiment

    word = scenario_word(scenario.file, scenario.name)
    if word.endswith(".py"):  # which is found from the folder of another process, too
        word = str(Path(word).resolve())
    return [
        ScenarioExperiment(word, config, tool_error=tool_error, engine=given.engine)
        for config in options.configs(vars(given), scenario.Config, laws)
    ]
