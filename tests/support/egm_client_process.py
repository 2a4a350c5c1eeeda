"""A client of somebody else's, unchanged, in a process of its own, which answers a robot with a stream.

    python tests/support/egm_client_process.py ABBRobotEGM.egm

Each line of standard input is a session: `{"method": "send_to_robot", "stream": [{...}, ...]}` has the
client's method and its arguments, message by message; the last ones again and again.  The port where the
client listens is printed, and when the robot is gone, which a message without anything in it tells, what the
client got.
"""

import importlib
import json
import sys


def session(module, method, stream):
    """Answer every message of a robot; what was got and sent."""
    client = module.EGM(port=0)
    say(client.socket.getsockname()[1])
    got, sent = {"joints": [], "planned": [], "position": [], "torque": [], "converged": []}, []
    while True:
        found, state = client.receive_from_robot(timeout=300.0)
        if not found or state.joint_angles is None or len(state.joint_angles) == 0:
            break
        message = state.robot_message
        got["joints"].append(state.joint_angles.tolist())
        got["planned"].append(state.joint_angles_planned.tolist())
        got["position"].append([getattr(message.feedBack.cartesian.pos, axis) for axis in "xyz"])
        got["torque"].append(state.torque_ref.tolist() if hasattr(state, "torque_ref") else None)
        got["converged"].append(message.mciConvergenceMet)
        arguments = stream[min(len(sent), len(stream) - 1)]
        if not getattr(client, method)(**arguments):
            break
        sent.append(arguments)
    client.close()
    say({"got": got, "sent": sent, "found": found})


def say(value):
    """A line of standard output."""
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    theirs = importlib.import_module(sys.argv[1])
    for line in sys.stdin:
        session(theirs, **json.loads(line))
