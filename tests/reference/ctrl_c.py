"""Ctrl-C, pressed while something is done."""

import os
import signal
import threading


def press_after(seconds, call):
    """Make a call, and press Ctrl-C meanwhile: KeyboardInterrupt comes from here, even if late."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    call()
    timer.join()
