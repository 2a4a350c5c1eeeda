"""Externally Guided Motion: the twin as a robot on the wire, a client for it, and a twin beside a real robot.

ABB's robots are guided and watched from outside by protobuf messages over UDP, every 4 ms.  The robot sends
first; whoever answers guides it.  From the ground up: `wire` (what the messages hold, and how they travel),
`guidance` (what a robot makes of them), `robot` (a robot that sends and is guided), `mirror` (a twin that
follows another robot's messages), `client` (who answers) and `log_replay` (a client that sends a log).

Source: ABB, Application manual Externally Guided Motion, 3HAC073318-001 Rev K; what it leaves open is ours,
and is marked so where it stands.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
