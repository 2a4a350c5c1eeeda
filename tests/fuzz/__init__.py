"""Fuzz tests: the program must read each damaged file correctly, or reject it with a one-line message.

A kind of file, a seed and a number determine a case.  This command makes it, judges it and writes its files:

    python -m tests.fuzz --kind urdf --seed 1 --case 4711

`cases.py` makes the cases, and `judges.py` defines correct results.  `workers.py` judges cases in separate
processes, so a crash or a hang is a fault of one case only.
"""
