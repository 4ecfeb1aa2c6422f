import os
import threading

import pytest

from hedgerow.lazy import lazy


class Square:
    def __init__(self, number, before=lambda: None):
        self.number = number
        self.before = before
        self.n_computed = 0

    @lazy
    def area(self):
        """Its area."""
        self.before()
        self.n_computed += 1
        return [self.number**2]


def test_is_computed_once_and_kept_in_the_object():
    square = Square(3)
    assert "area" not in vars(square)
    assert square.area == [9]
    assert square.area is square.area is vars(square)["area"]
    assert square.n_computed == 1
    assert Square.area.__doc__ == "Its area."


def test_threads_that_compute_at_the_same_time_get_the_same_value():
    both = threading.Barrier(2, timeout=60)
    square = Square(3, before=both.wait)
    found = []
    threads = [threading.Thread(target=lambda: found.append(square.area)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert square.n_computed == 2
    assert found[0] is found[1] is square.area


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_while_another_thread_computes():
    begun, end = threading.Event(), threading.Event()
    slow = Square(3, before=lambda: (begun.set(), end.wait(60)))
    thread = threading.Thread(target=lambda: slow.area)
    thread.start()
    assert begun.wait(60)
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(30)
        os._exit(0 if Square(2).area == [4] else 1)
    end.set()
    thread.join()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
