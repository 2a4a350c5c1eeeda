"""Externally Guided Motion (EGM): a simulated EGM robot, a client, and a twin that follows a real robot.

ABB robots exchange protobuf messages with an external client over UDP, every 4 ms.  The robot sends its state
first; the client that answers guides it.  The packages, from the lowest layer up:

- `wire`: content, encoding and transport of the messages.
- `guidance`: the motion that a robot computes from the answers.
- `robot`: a simulated robot that sends messages and is guided.
- `mirror`: a twin that follows the messages of another robot.
- `client`: a client that answers a robot.
- `log_replay`: a client that sends a recorded log.

Source: ABB, Application manual Externally Guided Motion, 3HAC073318-001 Rev K.  Where the manual leaves a
detail open, this package makes its own choice and marks it "ours".
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
