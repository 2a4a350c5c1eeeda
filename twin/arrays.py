"""Arrays from a caller, checked to hold real numbers: anything else is refused, not converted."""

from numbers import Real
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
"""An array of float64."""

OTHERS = {
    "b": "truth values",
    "c": "complex numbers",
    "M": "dates",
    "m": "spans of time",
    "S": "text",
    "U": "text",
    "V": "records",
}
"""Kinds of data that numpy would turn into float64 or try to, and what they are."""


def real_array(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return values as an array of float64, the caller's own if it is one.

    numpy makes real numbers of nearly everything: it takes those behind a mask, drops imaginary parts, counts
    seconds since 1970, and reads text.

    Raises:
        ValueError: values that are no real numbers, or whose rows differ in length; the message calls them
            `name`.
    """
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    if np.ma.is_masked(values):
        raise ValueError(f"expected {name} to be real numbers, got an array of which some are masked")
    try:
        array = np.asarray(values)
        if array.dtype.kind in OTHERS:
            raise ValueError(f"expected {name} to be real numbers, got {OTHERS[array.dtype.kind]}")
        if array.dtype.kind == "O" and not all(isinstance(value, Real) for value in array.flat):
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except TypeError:
        raise ValueError(f"expected {name} to be real numbers, got {_short(values)}") from None
    except ValueError as error:
        if str(error).startswith("expected"):
            raise
        raise ValueError(f"expected {name} to be real numbers, got {_short(values)}") from None


def time_step_of(value: float) -> float:
    """Return a time step, in [s]; `ValueError` unless it is one number above 0."""
    if (step := real_array(value, "the time step")).shape != () or not 0 < step < np.inf:
        raise ValueError(f"expected a time step above 0 s, got {value}")
    return float(step)


def float_array(value: ArrayLike, name: str, tail: tuple[int, ...]) -> NDArray[np.float64]:
    """Return value as a float array whose last dimensions are `tail`.

    Raises:
        ValueError: they are others; the message calls the array `name`.
    """
    array = real_array(value, name)
    if array.shape[-len(tail) :] != tail:
        wanted = ", ".join(map(str, tail))
        raise ValueError(f"expected {name} of shape (..., {wanted}), got {array.shape}")
    return array


def _short(values: object) -> str:
    """Some of what was given, on one line."""
    text = " ".join(repr(values).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
