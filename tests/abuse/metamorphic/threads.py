"""The number of threads."""

from hypothesis import strategies as st

from abuse.kind import Case, Kind
from abuse.metamorphic.answers import answers, assert_same_answers, file_of
from abuse.training import Training
from abuse.trainings import trainings

__all__ = ["KINDS"]


@st.composite
def large_trainings(draw: st.DrawFn) -> Case:
    """Training runs, some on data that are processed in pieces: many sequences, or long ones."""
    case = draw(trainings(based=True))
    size = draw(st.sampled_from(["small", "many", "long"]))
    data = case["data"]
    if size != "small" and case["parameters"].get("curvature") == "exact":
        case["parameters"]["curvature"] = "mixing"  # brute force, for small data only
    if size == "many":
        data["lengths"] = [*data["lengths"], 3] * draw(st.integers(30, 150))
    if size == "long":
        data["lengths"] = [*data["lengths"], draw(st.integers(500, 3000))]
    return case


def check_threads(case: Case) -> None:
    """Model files and answers are the same to the last bit for any number of threads."""
    training = Training.of(case)
    one = training.fit(n_jobs=1)
    expected, file = answers(one, training), file_of(one)
    for n_jobs in (2, 3, 7):
        crf = training.fit(n_jobs=n_jobs)
        assert file_of(crf) == file, f"n_jobs={n_jobs}"
        assert crf.history_ == one.history_
        assert_same_answers(answers(crf, training), expected)


KINDS = [Kind("metamorphic-threads", large_trainings(), check_threads, in_suite=2)]
