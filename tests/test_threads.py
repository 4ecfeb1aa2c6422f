import pytest

from hedgerow.threads import count_threads


def test_count_threads():
    n_cores = count_threads(None)
    assert count_threads(-1) == n_cores
    assert count_threads(3) == 3
    assert count_threads(-1000) == 1
    for wrong in (0, 1.5, True, 10**20):
        with pytest.raises(ValueError, match="n_jobs is"):
            count_threads(wrong)
