"""What every window offers: pause, pace, a push, a payload, frames, arrows, camera places, live text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from twin.robot.robot import Payload
from twin.window.camera import PLACES
from twin.window.overlays import Overlays
from twin.window.status_text import RED, StatusText

if TYPE_CHECKING:
    from twin.window.bench import Bench

HELP = (
    "space: pause   n: one step   + -: speed   f (held): push   p: payload",
    "t: frames   c: centres of mass   a: arrows   i: text   h: panels",
    "1 2 3 4: camera   Ctrl and mouse: turn it   wheel: nearer   Esc: close",
)
SPEEDS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
AXES = "xyz"
LOAD_COM = (0.0, 0.0, 0.05)  # m before the flange


class Controls:
    """The keys, buttons and sliders of every window.

    Args:
        bench: whose they are.
        client: PyBullet's, of the window.
    """

    help = HELP

    def __init__(self, bench: Bench, client: Any) -> None:
        self._bench = bench
        self._status, self._overlays = StatusText(bench), Overlays(bench, client)
        panel, rating = bench.panel, bench.arm.robot.rating
        load = 5.0 if rating is None else rating.payload
        self._force_range = 40.0 * load
        self._pause = panel.button("pause / go (space)")
        self._step = panel.button("one step (n)")
        self._slower, self._faster = panel.button("slower (-)"), panel.button("faster (+)")
        self._frames, self._coms = panel.button("frames (t)"), panel.button("centres of mass (c)")
        self._arrows = panel.button("arrows (a)")
        self._camera = panel.button("camera place (1 2 3 4)")
        self._force = panel.slider("push [N]", -self._force_range, self._force_range, self._force_range / 4)
        self._along = panel.button("push along x: change")
        self._push = panel.button("push: start / stop (f)")
        self._mass = panel.slider("payload [kg]", 0.1, 2.0 * load, load / 2)
        self._payload = panel.button("payload: attach / drop (p)")
        self._first_payload = bench.arm.robot.payload
        self._axis, self._pushing, self._place = 0, False, 0
        self._with_frames, self._with_coms, self._with_arrows = False, False, True

    def read(self) -> None:
        """Do what was asked for since the last picture."""
        bench, panel = self._bench, self._bench.panel
        if self._pause.pressed() or panel.key("space"):
            bench.paused = not bench.paused
        if self._step.pressed() or panel.key("n"):
            bench.step_once()
        if self._slower.pressed() or panel.key("-"):
            bench.speed = max((s for s in SPEEDS if s < bench.speed), default=SPEEDS[0])
        if self._faster.pressed() or panel.key("+") or panel.key("="):
            bench.speed = min((s for s in SPEEDS if s > bench.speed), default=max(bench.speed, SPEEDS[-1]))
        if self._frames.pressed() or panel.key("t"):
            self._with_frames = not self._with_frames
        if self._coms.pressed() or panel.key("c"):
            self._with_coms = not self._with_coms
        if self._arrows.pressed() or panel.key("a"):
            self._with_arrows = not self._with_arrows
        if panel.key("i"):
            bench.show_text(not bench.text_shown)
        if panel.key("h"):
            bench.show_panels(not bench.panels_shown)
        if self._camera.pressed():
            self._place = (self._place + 1) % len(PLACES)
            bench.look_from(self._place)
        for place in range(len(PLACES)):
            if panel.key(str(place + 1)):
                self._place = place
                bench.look_from(place)
        self._read_push()
        if self._payload.pressed() or panel.key("p"):
            self._change_payload()

    def _read_push(self) -> None:
        """The force of the person, from the key or the button."""
        bench = self._bench
        if self._along.pressed():
            self._axis = (self._axis + 1) % 3
            self._along.rename(f"push along {AXES[self._axis]}: change")
        if self._push.pressed():
            self._pushing = not self._pushing
        pushing = self._pushing or bench.panel.held("f")
        force = (self._force.value * pushing * np.eye(3)[self._axis]).tolist()
        if force == ([0.0] * 3 if bench.push is None else bench.push.tolist()):
            return
        bench.push = np.array(force) if any(force) else None
        if bench.push is None:
            bench.touch("push ended")
        else:
            self._tell_push()

    def _tell_push(self) -> None:
        self._bench.touch(f"pushed with {self._force.value:g} N along {AXES[self._axis]}")

    def _change_payload(self) -> None:
        """Drop what the arm carries, or attach a payload."""
        arm, before = self._bench.arm, self._bench.arm.robot.payload
        mass = float(f"{self._mass.value:.3g}")
        arm.change_payload(Payload(mass, LOAD_COM) if before is None else None)
        self._tell_payload(before)

    def _tell_payload(self, before: Payload | None) -> None:
        now = self._bench.arm.robot.payload
        dropped = "" if before is None else f"payload of {before.mass:g} kg dropped"
        self._bench.touch(dropped if now is None else f"payload of {now.mass:g} kg attached")

    def tell_what_lasts(self) -> None:
        """Note a push that lasts, and a payload that is not the one of the beginning."""
        if self._bench.push is not None:
            self._tell_push()
        if self._bench.arm.robot.payload is not self._first_payload:
            self._tell_payload(self._first_payload)

    def show(self) -> None:
        """Bring text and drawings up to date."""
        self._status.write()
        self._overlays.show(self._with_frames, self._with_coms)
        bench = self._bench
        if bench.push is not None and self._with_arrows:
            length = bench.reach / self._force_range
            bench.arrow("push", bench.tool_pose()[:3, 3], length * bench.push, RED)
        else:
            bench.remove("push")
