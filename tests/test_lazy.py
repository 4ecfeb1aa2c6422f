import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hedgerow
from hedgerow.lazy import LazyAttributes, lazy


class Square(LazyAttributes):
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
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: square.area, range(2)))
    assert square.n_computed == 2
    assert found[0] is found[1] is square.area


class AsksWhilePickled:
    """Does what another thread might do while an object is being pickled."""

    def __init__(self, owner):
        self.owner = owner

    def __reduce__(self):
        assert self.owner.area
        return int, (7,)


def test_pickles_leave_out_what_was_computed_also_while_they_are_made():
    square = Square(3, before=int)
    square.other = AsksWhilePickled(square)
    for _ in range(2):
        copy = pickle.loads(pickle.dumps(square))
        assert vars(copy) == {"number": 3, "before": int, "n_computed": 0, "other": 7}
        square.n_computed = 0
    assert "area" in vars(square)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
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


def test_nothing_is_cached_under_a_lock():
    sources = Path(hedgerow.__file__).parent.rglob("*.py")
    found = [path.name for path in sources if "cached_property" in path.read_text("utf-8")]
    assert found == ["lazy.py"], "use hedgerow.lazy: its docstring says why"
