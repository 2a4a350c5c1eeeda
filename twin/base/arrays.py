"""Validation of array arguments: values that are not real numbers are rejected, not converted."""

from numbers import Real
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
"""An array of float64."""

REJECTED_KINDS = {
    "b": "truth values",
    "c": "complex numbers",
    "M": "dates",
    "m": "spans of time",
    "S": "text",
    "U": "text",
    "V": "records",
}
"""NumPy dtype kinds that are rejected although NumPy could convert them to float64, with their names."""


def real_array(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return values as an array of float64; an array that is float64 already is returned uncopied.

    NumPy converts nearly everything to real numbers: it ignores masks, drops imaginary parts, counts
    seconds since 1970, and parses text.  All of these are rejected here.

    Raises:
        ValueError: values that are not real numbers, or rows of different lengths.  The message calls the
            array `name`.
    """
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    if np.ma.is_masked(values):
        raise ValueError(f"expected {name} to be real numbers, got an array of which some are masked")
    try:
        array = np.asarray(values)
        if array.dtype.kind in REJECTED_KINDS:
            raise ValueError(f"expected {name} to be real numbers, got {REJECTED_KINDS[array.dtype.kind]}")
        if array.dtype.kind == "O" and not all(isinstance(value, Real) for value in array.flat):
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except TypeError:
        raise ValueError(f"expected {name} to be real numbers, got {_short(values)}") from None
    except ValueError as error:
        if str(error).startswith("expected"):
            raise
        raise ValueError(f"expected {name} to be real numbers, got {_short(values)}") from None


def checked_time_step(value: float) -> float:
    """Return a time step as a float, in [s].

    Raises:
        ValueError: the value is not a single finite number above 0.
    """
    if (step := real_array(value, "the time step")).shape != () or not 0 < step < np.inf:
        raise ValueError(f"expected a time step above 0 s, got {value}")
    return float(step)


def float_array(value: ArrayLike, name: str, tail: tuple[int, ...]) -> NDArray[np.float64]:
    """Return value as a float array whose last dimensions are `tail`.

    Raises:
        ValueError: the last dimensions differ from `tail`.  The message calls the array `name`.
    """
    array = real_array(value, name)
    if array.shape[-len(tail) :] != tail:
        expected = ", ".join(map(str, tail))
        raise ValueError(f"expected {name} of shape (..., {expected}), got {array.shape}")
    return array


def _short(values: object) -> str:
    """Return the representation of values on one line of at most 60 characters."""
    text = " ".join(repr(values).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
