"""`irb-twin egm`: simulate an EGM robot, monitor a real one, record its messages, and replay logs."""

from scenarios.shell.parser import Commands

ABOUT = """Externally Guided Motion (EGM): ABB robots send their state in protobuf messages over UDP, every
4 ms, and follow the answers of a client. `serve` simulates such a robot: a client that guides it also guides
a real one. `mirror` compares a robot under the guidance of another client with its model. `record` writes the
messages of a robot to a log, and `replay` sends a log to a robot as its client.

See `irb-twin egm COMMAND --help` for details."""

EXAMPLES = """examples:
  irb-twin egm serve
  irb-twin egm serve --mode pose --max-speed-deviation 20 --log session.npz
  irb-twin egm mirror --listen 127.0.0.1:6510 --forward 127.0.0.1:6511
  irb-twin egm record stream.npz
  irb-twin egm replay run.npz
"""

EGM = Commands(
    ABOUT,
    "irb-twin egm COMMAND [options]",
    EXAMPLES,
    {
        "serve": ("abb.serve:ServeEgm", "simulate a robot that EGM clients guide"),
        "mirror": (
            "abb.egm.robot_streams:MirrorRobot",
            "compare a robot with its model: expected and reported torques, payload, alarm",
        ),
        "record": ("abb.egm.robot_streams:Record", "record the messages of a robot as a log"),
        "replay": ("abb.egm.robot_streams:Replay", "send a log to a robot as its client"),
    },
)
