"""Write the pictures of the guides into a folder: `python docs/pictures.py FOLDER`.

The build does so once for each state of the sources.
"""

import os
import shlex
import sys
import textwrap
from collections import Counter
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import controllers
import twin
from scenarios.shell.command_line import main
from twin.abb.egm import EgmClient, EgmRobot, GuidanceSettings, virtual_time
from twin.data.identification.measurements import measurements_of_log
from twin.data.identification.payload import identify_payload

COMMANDS = """
friction irb140 --picture friction.png
run joint_tracking --drives rigid --controller computed_torque pid --payload 2 --model-payload 0 --duration 1
    --picture tracking.png --log run.npz --report report.html
plot run-joint_tracking-computed_torque.npz run-joint_tracking-pid.npz --joint joint_1 joint_3
    --picture plot.png
replay run-joint_tracking-computed_torque.npz run-joint_tracking-pid.npz --film ghosts.gif --fps 8
    --size 480x360
sweep joint_tracking --drives rigid --bandwidth 40 --model-payload 0 --vary payload=0:6 drives.coulomb=+-50%
    --samples 300 --limit joint_error=0.04 --picture sweep.png
sweep joint_tracking --drives rigid --payload 6,0.083,0,0.08 --duration 2 --speed-fraction 0.2 --samples 300
    --vary model.drives.coulomb=+-50% model.drives.rotor_inertia=+-50% --limit joint_error=0.1
    --picture knowledge.png
run press --drives rigid --controller hybrid --log press.npz
replay press.npz --film press.gif --fps 8 --size 480x360
run excitation --drives rigid --time-step 0.002 --periods 1 --log excitation.npz
identify excitation.npz --picture fit.png
run excitation --time-step 0.002 --periods 1 --payload 6,0.02,-0.03,0.08 --log loaded.npz
"""


def payload(path, log="loaded.npz"):
    """Draw estimates of a payload against the length of the recording, whose torques have 2 % of noise."""
    log = twin.Log.load(log)
    measured = measurements_of_log(log)
    noise = (
        0.02 * np.abs(measured.tau).max(axis=0) * np.random.default_rng(0).standard_normal(measured.tau.shape)
    )
    measured = replace(measured, tau=measured.tau + noise)
    seconds = np.arange(1.0, log.t[-1], 0.5)
    estimates = [identify_payload(log.robot, measured, end=end) for end in seconds]
    figure, panels = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for panel, i, scale, true, unit in (
        (panels[0], 0, 1, 6.0, "mass  [kg]"),
        (panels[1], 3, 1e3, 80.0, "centre of mass, z  [mm]"),
    ):
        values = scale * np.array([found.values[i] for found in estimates])
        deviations = scale * np.array([found.deviations[i] for found in estimates])
        panel.axhline(true, color="#999999", label="true value")
        panel.errorbar(seconds, values, 2 * deviations, fmt="o", color="#0072b2", label="estimate, 95 %")
        panel.set(xlabel="length of the recording  [s]", ylabel=unit)
        panel.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figure.savefig(path, dpi=110)


def egm(path):
    """Draw what a client sends and where the arm is, cycle by cycle."""
    robot = twin.load("irb140")
    settings = GuidanceSettings(max_speed_deviation=60.0, ramp_time=0.05, cond_time=0.1)
    with EgmClient(port=0) as client, virtual_time(limit=60.0):
        law = controllers.make("computed_torque", robot)
        with EgmRobot(robot, law, settings, to=("127.0.0.1", client.port)) as arm:
            message = client.receive()
            target = message.q + np.radians([10, 5, 0, 0, 5, 0])
            while not message.converged:
                client.send_joints(target)
                message = client.receive()
    log = arm.log
    figure, panel = plt.subplots(figsize=(8, 3), layout="constrained")
    t, sent = log.arrays["egm_t"], log.arrays["egm_reference"]
    panel.step(t, np.degrees(sent[:, 0]), where="post", color="#e69f00", label="the client sends")
    panel.plot(log.t, np.degrees(log.q[:, 0]), color="#0072b2", label="the arm is at")
    panel.set(xlabel="time  [s]", ylabel="joint_1  [deg]")
    panel.grid(alpha=0.3)
    panel.legend()
    figure.savefig(path, dpi=110)


RECORD = np.array(  # F0, m0, k, mk and Fv of six motors, in joint units and degrees, see abb_controller
    [
        [12.5, 0.02, 175, 5.49, 5.2], [8.3, 0.022, 208, 5.44, 1.0], [8.07, 0.025, 91, 5.70, 5.0],
        [3.66, 0.06, 23.1, 9.39, 1.10], [6.17, 0.047, 51.8, 8.35, 1.11], [2.56, 0.037, 26.6, 8.93, 0.585],
    ]
)  # fmt: skip
UNTIL_NOW = [14, 34, 15, 4.0, 5.4, 3.6], [8.6, 22, 7.4, 1.1, 1.4, 0.76]  # Coulomb and viscous friction before


def virtual_controller(path):
    """Draw the friction of each motor of the IRB 140: ABB's virtual controller, ours, and ours before."""
    drives, speed = twin.load("irb140").drives, np.linspace(0.05, 60.0, 1200)
    figure, panels = plt.subplots(2, 3, figsize=(9, 5), layout="constrained", sharex=True)
    for i, panel in enumerate(panels.flat):
        F0, m0, k, mk, Fv = RECORD[i]
        ramp = F0 * np.minimum(speed / m0, 1.0) + np.radians(k * np.minimum(speed, mk))
        panel.plot(speed, ramp + Fv * np.radians(speed), color="#999999", lw=3, label="virtual controller")
        now, before = (drives.coulomb[i], drives.viscous[i]), (UNTIL_NOW[0][i], UNTIL_NOW[1][i])
        for (Fc, viscous), color, label in ((now, "#0072b2", "irb-twin"), (before, "#d55e00", "before")):
            panel.plot(speed, Fc + viscous * np.radians(speed), color=color, label=label)
        panel.set(title=f"motor {i + 1}", ylim=(0, None))
        panel.grid(alpha=0.3)
    for panel in panels[1]:
        panel.set_xlabel("speed  [deg/s]")
    for panel in panels[:, 0]:
        panel.set_ylabel("friction  [N m]")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    figure.savefig(path, dpi=110)


def arms(path):
    """Draw all arms at their zero pose with one camera and one crop, so that they have one scale."""
    robots = sorted(map(twin.load, twin.robot_names()), key=lambda robot: robot.rating.reach)
    farthest = max(robot.rating.reach for robot in robots)
    camera = {"target": (0.2 * farthest, 0.0, 0.45 * farthest), "distance": 2.2 * farthest, "yaw_deg": 20.0}
    images = []
    for robot in robots:
        with twin.Simulation(robot) as simulation:
            simulation.reset(np.zeros(robot.n))
            images.append(simulation.picture(1000, 1000, **camera))
    rows, columns = np.nonzero((np.min(images, axis=0) < 255).any(axis=2))
    abreast = min(5, len(robots))
    figure, panels = plt.subplots(-(-len(robots) // abreast), abreast, figsize=(10, 5), layout="constrained")
    for panel in panels.flat:
        panel.set_axis_off()
    for panel, robot, image in zip(panels.flat, robots, images, strict=False):
        panel.imshow(image[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1])
        panel.set_title(robot.name, y=-0.12)
    figure.savefig(path, dpi=110)


def house(path):
    """Draw the wings of the library with their rooms, and how many imports lead from each wing to another."""
    wings = ("base", "physics", "data", "studies", "abb")
    sys.path.append(str(Path(__file__).parents[1]))
    from tests.support.house import FILES, imports

    counts = Counter(
        (module.split(".")[1], name.split(".")[1])
        for module, names in imports().items()
        for name in names
        if module.startswith("twin.") and name.startswith("twin.")
    )
    figure, panel = plt.subplots(figsize=(9, 5), layout="constrained")
    for level, wing in enumerate(wings):
        inside = (name.split(".") for name in FILES if name.startswith(f"twin.{wing}."))
        rooms = sorted({parts[2] for parts in inside})
        panel.add_patch(plt.Rectangle((0, level), 5.4, 0.7, facecolor="#e8f1f8", edgecolor="#0072b2"))
        panel.text(0.1, level + 0.35, wing, va="center", weight="bold", size=12)
        panel.text(1.1, level + 0.35, textwrap.fill(", ".join(rooms), 62), va="center", size=8)
        for below, other in enumerate(wings[:level]):
            x, number = 5.6 + 0.8 * (4 - level) + 0.22 * below, counts[wing, other]
            if number:
                style = {"arrowstyle": "->", "lw": 0.5 + number / 120, "color": "#555555"}
                panel.annotate("", (x, below + 0.6), (x, level + 0.1), arrowprops=style)
                panel.text(x, level + 0.12, f"{number}", size=7, ha="center")
    panel.set(xlim=(-0.1, 8.4), ylim=(-0.1, 4.8))
    panel.set_axis_off()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for command in COMMANDS.replace("\n    ", " ").strip().splitlines():
        if status := main(shlex.split(command)):
            raise SystemExit(f"irb-twin {command}: exit status {status}")
    payload("payload.png")
    egm("egm.png")
    virtual_controller("virtual_controller.png")
    arms("arms.png")
    house("house.png")
