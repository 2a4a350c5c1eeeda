"""Damaged and odd files of every kind that the program reads: a sentence or a right answer, never less.

A case is a kind of file, a seed and a number, and is made of nothing else:

    python -m tests.fuzz --kind urdf --seed 1 --case 4711

makes it again, judges it, and writes its files out.  `cases.py` makes cases, `judges.py` says what is right,
and `workers.py` judges them in processes of their own, so that a crash or a hang is a fault of one case.
"""
