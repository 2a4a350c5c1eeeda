"""`irb-twin rapid`: check a program in RAPID, export a log as one, fit the plan to measured times."""

from scenarios.shell.parser import Commands

ABOUT = """Programs in RAPID, the language of ABB's robots, without a controller.

`check` runs a program, plans its motion and judges it line by line: reach, configuration, singularities,
joint speeds, torques with the load, and time. `export` writes the motion of a log as a program. `fit` finds
the share of the torque and the settling time that explain measured times.

See `irb-twin rapid COMMAND --help` for details."""

EXAMPLES = """examples:
  irb-twin rapid check pick.mod
  irb-twin rapid check backup/RAPID/TASK1 --robot irb1400 --junit results.xml
  irb-twin rapid export run.npz --speed v200 --zone z5 > path.mod
  irb-twin rapid fit stops.mod --times stops.csv
"""

RAPID = Commands(
    ABOUT,
    "irb-twin rapid COMMAND [options]",
    EXAMPLES,
    {
        "check": ("abb.rapid.check:Check", "run a program, plan its motion and judge it line by line"),
        "export": ("abb.rapid.check:ExportPath", "write the motion of a log as a program"),
        "fit": (
            "abb.rapid.check:Fit",
            "find the share of the torque and the settling time from measured times",
        ),
    },
)
