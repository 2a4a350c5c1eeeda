"""Frames, centres of mass and the payload on the arm, on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from twin.multibody.tree import body_of_parameters
from twin.robot.robot import Payload

if TYPE_CHECKING:
    from twin.window.bench import Bench

SEEN_THROUGH = 0.35
COM_COLOR, TOTAL_COLOR = (0.85, 0.0, 0.75), (0.0, 0.0, 0.0)
LOAD_COLOR = (0.25, 0.27, 0.3, 1.0)
DENSITY = 7800.0  # kg/m^3: a payload is drawn as a ball of steel
FRAME_LENGTH, CROSS = 0.14, 0.05  # of the arm's reach


class Overlays:
    """What is drawn on the arm of a bench.

    Args:
        bench: whose they are.
        client: PyBullet's, of the window.
    """

    def __init__(self, bench: Bench, client: Any) -> None:
        self._bench, self._client = bench, client
        self._frames, self._coms = False, False
        self._payload: Payload | None = None
        self._ball = -1

    def show(self, frames: bool, coms: bool) -> None:
        """Draw what is asked for, where the arm is now; the arm itself is seen through meanwhile."""
        arm = self._bench.drawn_arm
        arm.fade(SEEN_THROUGH if frames or coms else 1.0)
        arm.write()
        poses = arm.link_poses() if frames or coms else np.empty((0, 4, 4))
        if frames or self._frames:
            self._show_frames(poses, frames)
        if coms or self._coms:
            self._show_coms(poses, coms)
        self._frames, self._coms = frames, coms
        self._show_payload(self._bench.arm.robot.payload)

    def _show_frames(self, poses: np.ndarray, shown: bool) -> None:
        bench = self._bench
        length = FRAME_LENGTH * bench.reach
        for index, name in enumerate(bench.arm.robot.tree.names):
            if shown:
                bench.frame(f"frame of {name}", poses[index], length)
            else:
                bench.remove(f"frame of {name}")
        if shown:
            bench.frame("frame of the tool", bench.tool_pose(), 1.5 * length)
        else:
            bench.remove("frame of the tool")

    def _show_coms(self, poses: np.ndarray, shown: bool) -> None:
        bench = self._bench
        if not shown:
            bench.remove("centres of mass")
            bench.remove("centre of mass")
            return
        bodies = [body_of_parameters(row)[:2] for row in bench.arm.robot.inertias]
        masses = np.array([mass for mass, _ in bodies])
        coms = np.array([(T @ (*com, 1.0))[:3] for T, (_, com) in zip(poses, bodies, strict=True)])
        bench.crosses("centres of mass", coms[masses > 0], COM_COLOR, CROSS * bench.reach)
        whole = masses[None] @ coms / masses.sum()
        bench.crosses("centre of mass", whole, TOTAL_COLOR, 2 * CROSS * bench.reach)

    def _show_payload(self, payload: Payload | None) -> None:
        """A ball at its centre of mass, as heavy as it if it were of steel."""
        client = self._client
        if payload is not self._payload:
            self._payload = payload
            if self._ball >= 0:
                client.removeBody(self._ball)
                self._ball = -1
            if payload is not None and payload.mass > 0:
                radius = (3.0 * payload.mass / (4.0 * np.pi * DENSITY)) ** (1.0 / 3.0)
                shape = client.createVisualShape(client.GEOM_SPHERE, radius=radius, rgbaColor=LOAD_COLOR)
                self._ball = client.createMultiBody(baseMass=0, baseVisualShapeIndex=shape)
        if self._ball >= 0 and payload is not None:
            place = (self._bench.flange_pose() @ (*payload.com, 1.0))[:3].tolist()
            client.resetBasePositionAndOrientation(self._ball, place, [0.0, 0.0, 0.0, 1.0])
