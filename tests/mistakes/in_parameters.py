"""Mistakes in parameters."""

from sklearn.metrics import f1_score

from hedgerow import DataWarning, LinearCRF, TreeCRF
from mistakes.data import X, Y, trees, weights
from mistakes.mistake import mistake


@mistake(
    "A",
    TypeError,
    "base is the class LinearCRF; expected a LinearCRF() or a TreeCRF(), fitted or not, or None",
)
def a_class_as_a_base():
    trees(base=LinearCRF).fit(X, Y)


@mistake("A", TypeError, "TreeCRF has no parameter 'n_estimators'; did you mean n_rounds?")
def a_name_of_xgboost():
    TreeCRF(n_estimators=100)


@mistake(
    "A", TypeError, "LinearCRF has no parameter 'c2'; did you mean reg_lambda? c2=1 is reg_lambda=2"
)
def a_name_of_crfsuite():
    LinearCRF(c2=0.1)


@mistake(
    "A",
    ValueError,
    "learning_rate is -1; expected a number greater than 0 and at most 1e+06, or None",
)
def a_negative_learning_rate():
    trees(learning_rate=-1).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "learning_rate is 0; expected a number greater than 0 and at most 1e+06, or None",
)
def a_learning_rate_of_zero():
    trees(learning_rate=0).fit(X, Y)


@mistake("A", ValueError, "n_rounds is 0; expected an integer of at least 1")
def no_rounds():
    trees(n_rounds=0).fit(X, Y)


@mistake("A", ValueError, "n_rounds is 0.5; expected an integer of at least 1")
def half_a_round():
    trees(n_rounds=0.5).fit(X, Y)


@mistake("A", ValueError, "max_bins is 1000; expected an integer from 2 to 255")
def too_many_bins():
    trees(max_bins=1000).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "window is '2'; expected an integer from 0 to 255, the number of positions on either side, or",
    "a pair of them, (before, after)",
)
def a_window_as_text():
    trees(window="2").fit(X, Y)


@mistake(
    "A",
    ValueError,
    "objective is 'logloss'; expected 'likelihood', 'pointwise', 'accuracy', 'expected_accuracy',",
    "'f1', 'softmax_margin', or an object with the methods value and gradient",
)
def an_objective_that_does_not_exist():
    trees(objective="logloss").fit(X, Y)


@mistake("A", ValueError, "constraints is 'BOI'; expected 'BIO', 'IOB1', 'BILOU', 'BIOES' or None")
def a_scheme_that_does_not_exist():
    weights(constraints="BOI").fit(X, Y)


@mistake("A", ValueError, "class_weight is 'balance'; expected 'balanced' or None")
def balanced_misspelt():
    trees(class_weight="balance").fit(X, Y)


@mistake(
    "A",
    ValueError,
    "class_weight has the label 'swim', which does not occur in y; the labels of y are 'run',",
    "'walk'",
)
def a_weight_of_a_class_that_does_not_exist():
    trees(class_weight={"swim": 2.0}).fit(X, Y)


@mistake("A", ValueError, "label_costs has the unknown label 'swim'; known labels: 'run', 'walk'")
def a_cost_of_a_label_that_does_not_exist():
    trees(objective="softmax_margin", label_costs={"run": {"swim": 2.0}}).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "label_costs has the key ('run', 'walk'); expected true labels as keys, and dicts of costs by "
    "predicted label as values, such as {'A': {'B': 2.0}}",
)
def costs_of_pairs_of_labels():
    trees(objective="softmax_margin", label_costs={("run", "walk"): 2.0}).fit(X, Y)


@mistake("A", ValueError, "f1_labels has the unknown label 'swim'; known labels: 'run', 'walk'")
def f1_of_a_label_that_does_not_exist():
    trees(objective="f1", f1_labels=["swim"]).fit(X, Y)


@mistake("A", TypeError, "TreeCRF has no parameter 'cost_matrix'; did you mean label_costs?")
def another_name_of_costs():
    TreeCRF(cost_matrix=[[0, 1], [5, 0]])


@mistake("A", ValueError, "order is -1; expected an integer of at least 0")
def a_negative_order():
    trees(order=-1).fit(X, Y)


@mistake("A", ValueError, "forbidden has the unknown label 'swim'; known labels: 'run', 'walk'")
def a_rule_about_a_label_that_does_not_exist():
    trees(forbidden=[("run", "swim")]).fit(X, Y)


@mistake(
    "A",
    ValueError,
    "missing_label is 0.5; expected a string, an integer or a bool, as the labels are (None and",
    "NaN always mark a missing label)",
)
def a_missing_label_that_is_no_label():
    trees(missing_label=0.5).fit(X, Y)


@mistake("A", ValueError, "eval_metric is 'f1_makro'; did you mean f1_macro?")
def a_metric_that_does_not_exist():
    trees(eval_metric="f1_makro").fit(X, Y, eval_set=(X, Y))


@mistake(
    "A",
    DataWarning,
    "eval_metric is 'f1_macro', but there are no data to measure it on, so it changes nothing;",
    "call fit(..., eval_set=(X, y)), pass --dev on the command line, or set early_stopping_rounds,",
    "which holds out some training sequences",
)
def a_metric_without_an_eval_set():
    trees(eval_metric="f1_macro").fit(X, Y)


@mistake("B", TypeError, "callbacks holds 'print', which cannot be called")
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
    "n_jobs is 0; expected the number of threads, a positive integer; None or -1 for all cores; or",
    "-2 for all but one",
)
def no_threads():
    trees(n_jobs=0).fit(X, Y)


@mistake("A", ValueError, "subsample is 1.5; expected a number greater than 0 and at most 1")
def more_than_all_sequences():
    trees(subsample=1.5).fit(X, Y)


@mistake(
    "A",
    TypeError,
    "TreeCRF got the positional argument 50, but takes keyword arguments only; write "
    "TreeCRF(n_rounds=...),",
    "for example",
)
def a_parameter_without_a_name():
    TreeCRF(50)


@mistake("A", TypeError, "TreeCRF has no parameter 'max_iter'; did you mean n_rounds?")
def a_name_of_scikit_learn():
    TreeCRF(max_iter=100)


@mistake("A", ValueError, "TreeCRF has no parameter 'num_leaves'; did you mean max_leaves?")
def a_name_of_lightgbm():
    TreeCRF().set_params(num_leaves=31)


@mistake(
    "A",
    TypeError,
    "TreeCRF has no parameter 'warm_start'; did you mean the argument init of fit? fit(X, y,",
    "init=crf) starts from a model",
)
def a_warm_start():
    TreeCRF(warm_start=True)


@mistake("A", TypeError, "TreeCRF has no parameter 'reg_alpha'; it is a parameter of LinearCRF")
def a_parameter_of_the_other_estimator():
    TreeCRF(reg_alpha=0.1)


@mistake(
    "A",
    TypeError,
    "TreeCRF.fit has no argument 'early_stopping_rounds'; did you mean the parameter",
    "TreeCRF(early_stopping_rounds=...)?",
)
def a_parameter_given_to_fit():
    trees().fit(X, Y, eval_set=(X, Y), early_stopping_rounds=5)


@mistake(
    "A",
    ValueError,
    "eval_metric 'f1_score' cannot score the evaluation data ...: ...;",
    "it is called with two lists of label lists: for a metric of flat labels pass",
    "hedgerow.scorers.make_position_scorer(...)",
)
def a_metric_of_flat_labels():
    trees(eval_metric=f1_score).fit(X, Y, eval_set=(X, Y))


@mistake(
    "A",
    ValueError,
    "eval_metric has 'roc_auc', which compares probabilities; expected one that compares labels,",
    "such as 'f1_macro' or 'balanced_accuracy'",
)
def a_metric_of_probabilities():
    trees(eval_metric="roc_auc").fit(X, Y, eval_set=(X, Y))


@mistake(
    "A",
    ValueError,
    "early_stopping_metric is 'f1'; expected 'loss', 'accuracy', 'f1_macro' or None; to stop by",
    "another metric, name it in eval_metric too",
)
def early_stopping_by_what_is_not_measured():
    trees(eval_metric="f1_macro", early_stopping_metric="f1").fit(X, Y, eval_set=(X, Y))
