"""Scenario `constrained_circle`: a tool that is held on a circle, with position and force control."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import validity_metrics
from scenarios.metric import Metric
from scenarios.options import one_of, option, positive
from scenarios.scenario import Scenario
from scenarios.setup import Arms, Setup
from twin.base.errors import RobotError
from twin.data.logs.figures import place_of_largest, tool_distance
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from twin.data.logs.log import Log
    from twin.physics.dynamics.holonomic import ToolOn
    from twin.physics.trajectories.tool_paths import ToolMotion

KEPT = 1e-10
"""[m] and [m/s]: largest violation of the constraint. Observed: 1e-14."""
FORCE = 1e-10
"""[N]: largest error of forces of some 30 N, rounding. Observed: 5e-13."""
ENGINE = 1e-11
"""Largest acceleration across the circle in the engine, over that of the joints' parts. Observed: 1e-13."""
EVERY = 10
"""The engine is asked at every tenth sample."""


@dataclass(frozen=True, eq=False)
class CirclePath:
    """Tool path once around a circle about a vertical axis, from rest to rest, without turning the tool."""

    T_start: NDArray
    center: NDArray
    duration: float

    def __call__(self, t: ArrayLike, /) -> ToolMotion:
        """Return the motion of the tool at the times t (...), in [s]."""
        from twin.physics.trajectories.joint_trajectories import quintic_law
        from twin.physics.trajectories.tool_paths import ToolMotion

        laws = quintic_law(np.asarray(t) / self.duration)
        a, ad, add = (2.0 * np.pi * x[..., None] / self.duration**k for k, x in enumerate(laws))
        first = self.T_start[:3, 3] - self.center
        second = np.cross([0.0, 0.0, 1.0], first)
        r, along = np.cos(a) * first + np.sin(a) * second, np.cos(a) * second - np.sin(a) * first
        pose, still = np.array(np.broadcast_to(self.T_start, (*r.shape[:-1], 4, 4))), np.zeros_like(r)
        pose[..., :3, 3] = self.center + r
        twist_rate = np.concatenate([add * along - ad**2 * r, still], axis=-1)
        return ToolMotion(pose, np.concatenate([ad * along, still], axis=-1), twist_rate)


@dataclass(frozen=True, eq=False, kw_only=True)
class CircleRun(TrackingRun):
    """Run on the circle.

    Attributes:
        held: the constraint: height, and distance from the axis.
        force_error: (N, 2) force of the constraint on the tool less the desired one, upwards and outwards, in
            [N]; 0 at the last sample, which has no step.
        engine_error: largest acceleration across the circle in the engine, under the forces of the
            constraint, over that of the joints' parts.
        exact: whether the controller's model is the plant, without sensors and torque limits, and with a new
            torque at every step.
        place_limit: largest distance of the tool from its place, in [m]; `None` if it is not known.
    """

    held: ToolOn
    force_error: NDArray
    engine_error: float
    exact: bool
    place_limit: float | None


class ConstrainedCircle(Scenario):
    """Move the tool on a circle that holds it: position control along it, force control across.

    What it shows: the tool cannot leave a horizontal circle (`twin.ConstrainedPlant`). The controller of the
    setup moves it around, without turning it, and hybrid control (`controllers.hybrid`, after Khatib 1987)
    adds the torques that make it press on the plane and against the rim with the desired forces. The
    multipliers of the constraint are the forces on the tool. The controller changes the motion along the
    circle only: with an exact model the forces are exact under every controller.

    What must hold: the tool stays on the circle to 1e-10 m, and its speed across it is 0. With an exact model
    the forces are the desired ones at every sample. If the engine pushes the tool of the free arm with the
    forces of the constraint, the tool accelerates along the circle only. Under computed torque with an exact
    model the tool misses its place only by what a torque that is constant over a control period causes.
    """

    defaults = {"reference": "continuous"}
    radius: float = option(0.1, "radius of the circle, in m")
    duration: float = option(2.0, "length of the motion, in s")
    press: float = option(30.0, "force of the tool on the plane, downwards, in N")
    rim: float = option(10.0, "force of the tool against the rim, outwards, in N")
    leaves_limits = "under PD, which knows no weight, the wrist turns over while the circle holds the tool"
    variants = ({"press": -20.0}, {"steps_per_period": 2}, {"model_payload": "1"})

    def __post_init__(self) -> None:
        positive(self.radius, "radius", "m")
        positive(self.duration, "duration", "s")

    def check(self, setup: Setup) -> None:
        """Raise an error if the drives are not ideal, or a window is to be opened."""
        one_of(setup.drives, "drives for this scenario", ("ideal",))
        if setup.environment is not None:
            raise ValueError("the constraint alone acts on the tool here: omit push and surface")
        if setup.gui:
            raise ValueError("this scenario runs in the analytic model, which has no window: omit gui")

    def suits(self, robot: Robot) -> bool:
        """Return whether the robot has masses, and a tour of poses: the circle starts in the first one."""
        return bool(robot.tour) and robot.has_inertia

    def run(self, setup: Setup | None = None) -> CircleRun:
        """Run the closed loop in the constrained plant, and try its forces in the engine."""
        import twin
        from controllers.hybrid import Hybrid

        setup = self.checked(setup)
        robot, tool = setup.load_robot(), setup.T_flange_tool
        if not robot.tour:
            raise RobotError(f"robot {robot.name!r} has no [tour] of poses in a robot.toml, where to start")
        model, q = setup.model_of(Arms(robot)), robot.poses[robot.tour[0]]
        T = twin.forward_kinematics(robot, q, tool)
        center = T[:3, 3] - self.radius * np.append(T[:2, 3] / np.linalg.norm(T[:2, 3]), 0.0)
        motion = twin.joint_path(robot, CirclePath(T, center, self.duration), near=q, T_flange_tool=tool)
        held = twin.dynamics.ToolOn(twin.dynamics.circle(center, [0.0, 0.0, 1.0], self.radius), tool)
        plant = twin.ConstrainedPlant(robot, held, setup.time_step)
        law, K, desired = setup.control_law(model), setup.bandwidth, np.array([self.press, -self.rim])
        log = twin.run_closed_loop(
            plant, Hybrid(law, model, held, desired, lambda: plant.force, K, setup.period),
            setup.sampling().sampled(motion), steps_per_period=setup.steps_per_period,
            sensors=setup.sensors, progress=setup.progress,
        )  # fmt: skip
        log = replace(log, T_flange_tool=tool, model_drives=model.drive_mode)
        forces = plant.forces[:: setup.steps_per_period]
        exact = setup.model_payload is None and model.drive_mode == "ideal" and setup.sensors is None
        exact = exact and not np.any(log.saturated)
        known = exact and setup.known_law and setup.controller == "computed_torque" and not setup.law_settings
        return CircleRun(
            log, is_draw=True, held=held, force_error=np.append(forces - desired, [[0.0, 0.0]], axis=0),
            engine_error=engine_error(log, held, forces),
            exact=exact and setup.steps_per_period == 1,
            place_limit=2.0 * missed(log, held) / K**2 if known else None,
        )  # fmt: skip

    def metrics(self, run: CircleRun) -> tuple[Metric, ...]:
        """Return the checks of constraint, forces and position."""
        log, held, force = run.log, run.held, np.abs(run.force_error).max(axis=1)
        phi = np.abs(held.violation(log.robot, log.q)).max(axis=1)
        speeds = [held.at(log.robot, q, qd).J @ qd for q, qd in zip(log.q, log.qd, strict=True)]
        across, distance = np.abs(speeds).max(axis=1), tool_distance(log)
        rigid, wrong_model = (
            "the constraint is rigid; rounding",
            "wrong model, sensors, torque limits or held torques",
        )

        def checked(name: str, of: NDArray, unit: str, limit: float | None, why: str) -> Metric:
            return Metric(name, float(of.max()), unit, limit, why, place_of_largest(log, of))

        return (
            checked("distance from the circle", phi, "m", KEPT, rigid),
            checked("speed across the circle", across, "m/s", KEPT, rigid),
            checked(
                "largest error of the force", force, "N", FORCE if run.exact else None,
                "the force control knows the plant; rounding" if run.exact else wrong_model,
            ),
            Metric(
                "acceleration across the circle, engine", run.engine_error, "",
                10 * ENGINE if log.robot.loops else ENGINE,
                "relative; the forces of the constraint push the tool of the free arm in the engine; "
                "rounding, ten times as much where the engine solves closed loops by iteration",
            ),
            checked(
                "largest distance along the circle", distance, "m", run.place_limit,
                "of the tool from its place; limit: twice a / omega^2, with the acceleration a that a torque "
                "which is constant over a period misses; twice, as the directions of the circle turn",
            ),
            *validity_metrics(log),
        )  # fmt: skip


def engine_error(log: Log, held: ToolOn, forces: NDArray) -> float:
    """Return the largest acceleration of the engine's tool across a constraint, over that of its terms.

    The forces (N - 1, m) of the constraint push the tool of the free arm in the engine, at every `EVERY`-th
    sample.
    """
    from twin.physics.dynamics.constrained import surface_list
    from twin.physics.engine.simulation import Simulation

    found, tool = [], log.T_flange_tool
    with Simulation(log.robot, time_step=log.time_step) as engine:
        for k in range(0, len(forces), EVERY):
            q, qd = log.q[k], log.qd[k]
            engine.reset(q, qd)
            p = engine.tool_pose(tool)[:3, 3]
            push = forces[k] @ np.array([surface(p).gradient for surface in surface_list(held.surfaces)])
            engine.step(log.tau[k], np.append(push, np.zeros(3)), tool)
            (_, J, Jd), qdd = held.at(log.robot, q, qd), (engine.state()[1] - qd) / log.time_step
            found.append([J @ qdd + Jd @ qd, np.abs(J) @ np.abs(qdd)])
    left, size = np.abs(found).max(axis=(0, 2))
    return float(left / size)


def missed(log: Log, held: ToolOn) -> float:
    """Return the largest acceleration of the tool that a torque misses at the end of its period, in [m/s^2].

    It is the acceleration under the next torque, less that under the torque that still acts.
    """
    from twin.physics.dynamics.constrained import constrained_forward_dynamics, surface_constraint
    from twin.physics.kinematics.forward import jacobian

    at = log.robot, log.q[1:], log.qd[1:]
    there = surface_constraint(*at, held.surfaces, log.T_flange_tool)
    old, new = (
        constrained_forward_dynamics(*at, tau, there, log.T_flange_tool).qdd
        for tau in (log.tau[:-1], log.tau[1:])
    )
    late = np.einsum("kij,kj->ki", jacobian(*at[:2], log.T_flange_tool)[:, :3], new - old)
    return float(np.linalg.norm(late, axis=1).max())


if __name__ == "__main__":
    from scenarios.shell.process import run_script

    raise SystemExit(run_script(__file__))
