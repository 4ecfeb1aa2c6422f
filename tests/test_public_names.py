"""What `import hedgerow` gives."""

import subprocess
import sys

import pytest

import hedgerow

MODULES = """
    comm dask datasets files inspection metrics model_selection objectives plots preprocessing
    relational report scorers stats trellis
"""


def test_every_public_name_and_module_is_there():
    for name in (*hedgerow.__all__, *MODULES.split()):
        assert getattr(hedgerow, name) is not None
        assert name in dir(hedgerow)
    with pytest.raises(AttributeError, match="module 'hedgerow' has no attribute 'tree'"):
        _ = hedgerow.tree


def test_modules_are_imported_when_they_are_asked_for():
    code = (
        "import sys, hedgerow\n"
        "assert 'numpy' not in sys.modules and 'hedgerow.datasets' not in sys.modules\n"
        "print(hedgerow.datasets.__name__, hedgerow.__version__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stderr, done.stdout.split()[-1]) == ("", hedgerow.__version__)
