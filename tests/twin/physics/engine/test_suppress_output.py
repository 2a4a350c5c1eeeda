"""The console, which PyBullet chatters to, is given back, whoever was silent at the same time."""

import os

from tests.support.forks import NUMBA, Fork
from twin.physics.engine.client import suppress_output


def printed_by(script):
    ended = Fork(script, NUMBA).wait()
    assert ended.returncode == 0, ended.stderr
    return ended.stdout, ended.stderr


def test_two_that_are_silent_at_once_give_the_console_back():
    out, error = printed_by("""
        import sys, threading
        from twin.physics.engine.client import suppress_output

        first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()

        def first():
            with suppress_output():
                first_in.set()
                second_in.wait()
                print("nobody reads this")
            first_out.set()

        def second():
            first_in.wait()
            with suppress_output():
                second_in.set()
                first_out.wait()
                print("nor this")

        threads = [threading.Thread(target=target) for target in (first, second)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print("told")
        print("told too", file=sys.stderr)
    """)
    assert (out, error) == ("told\n", "told too\n")


def test_silence_may_be_nested_and_leaves_no_file_open(capfd):
    before = os.listdir("/dev/fd")
    with suppress_output():
        with suppress_output(errors=False):
            os.write(1, b"unheard")
        os.write(2, b"unheard")
    with suppress_output(errors=False):
        os.write(1, b"unheard")
        os.write(2, b"one error, ")
    os.write(1, b"heard")
    os.write(2, b"heard too")
    assert capfd.readouterr() == ("heard", "one error, heard too")
    assert os.listdir("/dev/fd") == before
