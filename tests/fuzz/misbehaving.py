"""A judge that crashes, exits or hangs; its processes start fast, because it imports no physics."""

import os
import time

from tests.fuzz.verdicts import Verdict


def misbehaving_judge(behaviour):
    """Let the process crash, exit or hang, or return as requested."""
    match behaviour:
        case "crash":
            os.abort()
        case "exit":
            os._exit(3)
        case "hang":
            time.sleep(1000)
    return Verdict("accepted", str(os.getpid()))
