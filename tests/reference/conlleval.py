"""Chunks as the CoNLL-2000 evaluation script counts them, one pair of neighbours at a time.

The script processes both labellings together and determines at every step whether a chunk ends
before this label and whether one begins with it, from a table of tag pairs; a change of type ends
and begins a chunk whatever the tags. E and S are L and U under other names.
"""

ALIAS = {"L": "E", "U": "S"}
# Pairs (tag before, tag) between two labels of the same type.
ENDS = {
    *[("B", "B"), ("B", "S"), ("B", "O"), ("I", "B"), ("I", "S"), ("I", "O")],
    *[("E", tag) for tag in "BIESO"],
    *[("S", tag) for tag in "BIESO"],
}
BEGINS = {
    *[(before, "B") for before in "BIESO"],
    *[(before, "S") for before in "BIESO"],
    *[(before, tag) for before in "ESO" for tag in "IE"],
}


def split(label):
    tag, _, kind = label.partition("-")
    return ALIAS.get(tag, tag), kind


def ends(before, after):
    (tag, kind), (next_tag, next_kind) = split(before), split(after)
    return tag != "O" and ((tag, next_tag) in ENDS or kind != next_kind)


def begins(before, after):
    (tag, kind), (next_tag, next_kind) = split(before), split(after)
    return next_tag != "O" and ((tag, next_tag) in BEGINS or kind != next_kind)


def count_chunks(y_true, y_pred):
    """(true, predicted, correct) by type, with the script's running comparison."""
    counts = {}

    def add(kind, place):
        counts.setdefault(kind, [0, 0, 0])[place] += 1

    for true, predicted in zip(y_true, y_pred, strict=True):
        matching = None  # type of a chunk that so far is the same on both sides
        true_before = predicted_before = "O"
        for true_now, predicted_now in zip([*true, "O"], [*predicted, "O"], strict=True):
            true_ends = ends(true_before, true_now)
            predicted_ends = ends(predicted_before, predicted_now)
            if matching is not None:
                if true_ends and predicted_ends:
                    add(matching, 2)
                    matching = None
                elif true_ends != predicted_ends:
                    matching = None
            true_begins = begins(true_before, true_now)
            predicted_begins = begins(predicted_before, predicted_now)
            if true_begins:
                add(split(true_now)[1], 0)
            if predicted_begins:
                add(split(predicted_now)[1], 1)
            if true_begins and predicted_begins and split(true_now)[1] == split(predicted_now)[1]:
                matching = split(true_now)[1]
            true_before, predicted_before = true_now, predicted_now
    return counts
