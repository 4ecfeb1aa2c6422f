"""Ctrl-C during a call."""

import os
import signal
import threading


def press_after(seconds, call):
    """Make a call, and press Ctrl-C during it: KeyboardInterrupt is raised here, even if late."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    call()
    timer.join()
