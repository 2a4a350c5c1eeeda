"""Third-party EGM client, unchanged, in a separate process, which answers a robot with a stream.

    python tests/support/egm_client_process.py ABBRobotEGM.egm

Each line of standard input is a session: `{"method": "send_to_robot", "stream": [{...}, ...]}` contains a
method of the client and its arguments for each message; the last arguments are repeated.  The process prints
the port of the client.  An empty message ends the session; the process then prints what the client received
and sent.
"""

import importlib
import json
import sys


def session(module, method, stream):
    """Answer every message of a robot; print what was received and sent."""
    client = module.EGM(port=0)
    print_json(client.socket.getsockname()[1])
    received, sent = {"joints": [], "planned": [], "position": [], "torque": [], "converged": []}, []
    while True:
        found, state = client.receive_from_robot(timeout=300.0)
        if not found or state.joint_angles is None or len(state.joint_angles) == 0:
            break
        message = state.robot_message
        received["joints"].append(state.joint_angles.tolist())
        received["planned"].append(state.joint_angles_planned.tolist())
        received["position"].append([getattr(message.feedBack.cartesian.pos, axis) for axis in "xyz"])
        received["torque"].append(state.torque_ref.tolist() if hasattr(state, "torque_ref") else None)
        received["converged"].append(message.mciConvergenceMet)
        arguments = stream[min(len(sent), len(stream) - 1)]
        if not getattr(client, method)(**arguments):
            break
        sent.append(arguments)
    client.close()
    print_json({"received": received, "sent": sent, "found": found})


def print_json(value):
    """Print a value as a line of JSON."""
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    client_module = importlib.import_module(sys.argv[1])
    for line in sys.stdin:
        session(client_module, **json.loads(line))
