"""What a bench needs: of the arm that it shows, and of the controls that it offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from twin.robot.robot import Payload, Robot


class Watched(Protocol):
    """What a bench shows and touches: `twin.Simulation`."""

    robot: Robot
    time_step: float

    @property
    def tau(self) -> np.ndarray: ...  # noqa: D102
    def state(self) -> np.ndarray: ...  # noqa: D102
    def change_payload(self, payload: Payload | None) -> None: ...  # noqa: D102


class Offered(Protocol):
    """What a window offers: `Controls`, or others in their place."""

    @property
    def help(self) -> Sequence[str]: ...  # noqa: D102
    def read(self) -> None: ...  # noqa: D102
    def show(self) -> None: ...  # noqa: D102
    def tell_what_lasts(self) -> None: ...  # noqa: D102
