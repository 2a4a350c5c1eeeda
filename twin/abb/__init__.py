"""Virtual controller: RAPID that lives, in several tasks, with signals, sockets and an arm in real time."""
