"""What a robot on the wire is doing, in the words of RAPID."""

from enum import Enum


class EgmState(Enum):
    """What `EGMGetState` tells."""

    DISCONNECTED = "EGM_STATE_DISCONNECTED"
    """Before the set-up, and after the last message."""
    CONNECTED = "EGM_STATE_CONNECTED"
    """Messages are sent, nothing guides the arm."""
    RUNNING = "EGM_STATE_RUNNING"
    """An instruction waits for its first answer, guides, or comes to its end."""
