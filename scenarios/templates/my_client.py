"""Client of the station: turns the first joint, closes the gripper, and checks what comes back."""

import socket
import sys
import time

PORT = 15000


def connected():
    """Return a connection to the virtual controller, which may still be starting."""
    for _ in range(300):
        try:
            return socket.create_connection(("127.0.0.1", PORT), timeout=20)
        except ConnectionRefusedError:
            time.sleep(0.1)
    sys.exit(f"nobody listens on port {PORT}")


with connected() as controller:

    def ask(request):
        """Return the answer to a request."""
        controller.sendall(request.encode())
        return controller.recv(80).decode()

    answers = [ask(request) for request in ("20", "where", "grip")]
    sys.stdout.write(f"client: {' '.join(answers)}\n")
    sys.exit(answers != ["there", "20.00", "gripped"])
