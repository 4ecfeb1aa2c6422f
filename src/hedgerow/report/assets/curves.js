// Learning curves: what training noted of each round or iteration.

const CURVE_NAMES = {
  loss: "training",
  accuracy: "training",
  eval_loss: "evaluation",
  eval_accuracy: "evaluation",
};

function showCurves() {
  const { curves, step, best } = data.history;
  const charts = chartsOf(curves).map(([name, keys]) =>
    lineChart(
      name,
      keys.map((key) => ({
        name: CURVE_NAMES[key] ?? key,
        values: curves[key],
        style: key.startsWith("eval") ? "second" : "first",
      })),
      step,
      /accuracy/i.test(name),
      best,
    ),
  );
  const note =
    best === null
      ? null
      : make("p", { class: "quiet" }, `The dashed line marks the best round, ${count(best)}.`);
  return [make("div", { class: "charts" }, ...charts), note];
}

/** Which curves go together: those of one kind, unless their units differ. */
function chartsOf(curves) {
  const left = new Set(Object.keys(curves));
  const charts = [];
  for (const [name, own, other] of [
    ["Loss", "loss", "eval_loss"],
    ["Accuracy", "accuracy", "eval_accuracy"],
  ]) {
    const keys = [own, other].filter((key) => left.delete(key));
    if (keys.length === 2 && !alike(curves[own], curves[other])) {
      charts.push([`${name} in training`, [own]], [`${name} in evaluation, a position`, [other]]);
    } else if (keys.length) {
      charts.push([name, keys]);
    }
  }
  return [...charts, ...[...left].map((key) => [key, [key]])];
}

/** A loss with penalties, summed over all positions, is no match for one a position. */
function alike(one, other) {
  const [a, b] = [Math.abs(one[0] ?? 0), Math.abs(other[0] ?? 0)];
  return a < 20 * b && b < 20 * a;
}
