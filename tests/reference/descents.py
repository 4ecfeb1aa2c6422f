"""Descents: what each iteration gives, and where it ends."""


def follow(descent):
    """Go through all iterations; returns the minimum, and weights and loss after each of them."""
    reports = []
    while True:
        try:
            weights, loss = next(descent)
        except StopIteration as end:
            return end.value, reports
        reports.append((weights.copy(), loss))
