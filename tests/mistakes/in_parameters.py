"""Mistakes in parameters."""

from hedgerow import LinearCRF, TreeCRF
from mistakes.data import X, Y, trees, weights
from mistakes.mistake import mistake


@mistake(
    "A",
    TypeError,
    "TreeCRF has no parameter 'n_estimators'; did you mean n_rounds?",
)
def a_name_of_xgboost():
    TreeCRF(n_estimators=100)


@mistake(
    "A",
    TypeError,
    "LinearCRF has no parameter 'c2'; did you mean reg_lambda? c2=1 is reg_lambda=2",
)
def a_name_of_crfsuite():
    LinearCRF(c2=0.1)


@mistake(
    "A",
    ValueError,
    "learning_rate is -1; expected a number greater than 0 and at most 1e+06",
)
def a_negative_learning_rate():
    trees(learning_rate=-1).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "learning_rate is 0; expected a number greater than 0 and at most 1e+06",
)
def a_learning_rate_of_zero():
    trees(learning_rate=0).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "n_rounds is 0; expected an integer of at least 1",
)
def no_rounds():
    trees(n_rounds=0).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "n_rounds is 0.5; expected an integer of at least 1",
)
def half_a_round():
    trees(n_rounds=0.5).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "max_bins is 1000; expected an integer from 2 to 255",
)
def too_many_bins():
    trees(max_bins=1000).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "window is '2'; expected how many positions to look at on either side, 0 to 255, or (before,",
    "after)",
)
def a_window_as_text():
    trees(window="2").fit(X, Y)


@mistake(
    "A",
    ValueError,
    "objective is 'logloss'; expected 'likelihood', 'pointwise', 'accuracy', 'expected_accuracy',",
    "or an object with the methods value and gradient",
)
def an_objective_that_does_not_exist():
    trees(objective="logloss").fit(X, Y)


@mistake(
    "A",
    ValueError,
    "constraints is 'BOI'; expected 'BIO' or 'IOB1' or 'BILOU' or 'BIOES' or None",
)
def a_scheme_that_does_not_exist():
    weights(constraints="BOI").fit(X, Y)


@mistake(
    "A",
    ValueError,
    "class_weight is 'balance'; expected 'balanced' or None",
)
def balanced_misspelt():
    trees(class_weight="balance").fit(X, Y)


@mistake(
    "A",
    ValueError,
    "class_weight has the label 'swim', which does not occur in y; its labels are 'run', 'walk'",
)
def a_weight_of_a_class_that_does_not_exist():
    trees(class_weight={"swim": 2.0}).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "order is -1; expected an integer of at least 0",
)
def a_negative_order():
    trees(order=-1).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "forbidden has the unknown label 'swim'; known labels: 'run', 'walk'",
)
def a_rule_about_a_label_that_does_not_exist():
    trees(forbidden=[("run", "swim")]).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "missing_label is 0.5; expected a string, an integer or a bool, as the labels are (None and",
    "NaN always say that a label is missing)",
)
def a_missing_label_that_is_no_label():
    trees(missing_label=0.5).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "eval_metric is 'f1_makro'; did you mean f1_macro?",
)
def a_metric_that_does_not_exist():
    trees(eval_metric="f1_makro").fit(X, Y, eval_set=(X, Y))


@mistake(
    "B",
    TypeError,
    "callbacks holds 'print', which cannot be called",
)
def a_callback_that_cannot_be_called():
    trees(callbacks=["print"]).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "random_state is 'now'; expected an integer from 0 to 2**32 - 1, a numpy.random.RandomState,",
    "or None",
)
def a_seed_that_is_a_word():
    trees(subsample=0.5, random_state="now").fit(X, Y)


@mistake(
    "A",
    ValueError,
    "n_jobs is 0; expected a positive number of threads, None or -1 for all cores, or -2 for all",
    "but one",
)
def no_threads():
    trees(n_jobs=0).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "subsample is 1.5; expected a number greater than 0 and at most 1",
)
def more_than_all_sequences():
    trees(subsample=1.5).fit(X, Y)
