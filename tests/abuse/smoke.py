from abuse.kind import Kind
from abuse.trainings import Training, trainings


def check(case):
    t = Training.of(case)
    m = t.fit()
    m.predict(t.X, **t.ask_parameters)
    m.predict_marginals(t.X, **t.ask_parameters)


KINDS = [Kind("smoke", trainings(), check, in_suite=20)]
