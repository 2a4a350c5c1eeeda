"""`irb-twin egm`: a robot on the wire, a twin beside one, records of streams, and their replay."""

from scenarios.cli.arguments import Commands

ABOUT = """Externally Guided Motion (EGM): ABB's robots tell where they are in protobuf messages over UDP,
every 4 ms, and go where the answers say. `serve` is such a robot: a client that guides it guides a real one.
`mirror` is a twin beside a robot that somebody else guides, `record` writes what a robot tells as a log, and
`replay` sends a log to a robot as its client.

`irb-twin egm COMMAND --help` tells more of each."""

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
        "serve": ("egm.serve:Serve", "be a robot that EGM clients guide"),
        "mirror": (
            "egm.listen:MirrorRobot",
            "follow a robot's stream: expected and reported torques, payload, alarm",
        ),
        "record": ("egm.listen:Record", "write a robot's stream to a log"),
        "replay": ("egm.replay:Replay", "send a log to a robot, as its client would"),
    },
)
