"""Runs in which a part differs, for checks that must see it."""

from dataclasses import replace


def with_log(run, **changes):
    """Return the run with changes of its log; the prediction remains."""
    return replace(run, log=replace(run.log, **changes))


def with_loop(run, **changes):
    """Return the run with other facts of its loop."""
    return replace(run, loop=replace(run.loop, **changes))


def with_prediction(run, **changes):
    """Return the run with another prediction of the model."""
    return replace(run, prediction=replace(run.prediction, **changes))


def with_rounding(run, **changes):
    """Return the run with another distance of runs that differ by rounding."""
    return with_prediction(run, rounding=replace(run.prediction.rounding, **changes))
