// Learning curves: the metrics of each round or iteration.

const CURVE_STYLES = ["first", "second", "third", "fourth"];

function showCurves() {
  const { curves, step, best } = data.history;
  const holder = make("div", { class: "charts" });
  const update = (isLog) =>
    holder.replaceChildren(
      ...chartsOf(curves).map(([name, keys, metric]) =>
        lineChart(
          name,
          keys.map((key) => ({
            name: curveName(key),
            values: curves[key],
            style: key === metric ? "first" : styleOf(key, metric, curves),
          })),
          {
            step,
            unit: metric === "accuracy" ? "share of positions" : metric,
            isShare: metric === "accuracy",
            mark: best,
            isLog: isLog && metric === "loss",
          },
        ),
      ),
    );
  const box = make("input", { type: "checkbox", change: () => update(box.checked) });
  update(false);
  return [
    make(
      "div",
      { class: "tools" },
      make("label", { class: "field check" }, box, make("span", {}, "loss on a log scale")),
    ),
    holder,
  ];
}

/** Name of a curve: the training data, or one of the eval sets. */
function curveName(key) {
  if (!(key in data.history.sets)) return "training data";
  const [name] = data.history.sets[key];
  return name === "eval" ? "eval_set" : name;
}

/** Curves of eval sets, in the order of their names in the history. */
function evalKeys(curves, metric) {
  const { sets } = data.history;
  return Object.keys(curves).filter((key) => key in sets && sets[key][1] === metric);
}

function styleOf(key, metric, curves) {
  const number = evalKeys(curves, metric).indexOf(key) + 1;
  return CURVE_STYLES[Math.min(number, CURVE_STYLES.length - 1)];
}

/** Which curves go together: those of one kind, unless their units differ. */
function chartsOf(curves) {
  const charts = [];
  const metrics = new Set(Object.values(data.history.sets).map(([, metric]) => metric));
  const names = { loss: "Loss", accuracy: "Accuracy" };
  for (const metric of new Set([...Object.keys(names), ...metrics])) {
    const name = names[metric] ?? metric;
    const own = metric in curves ? [metric] : [];
    const others = evalKeys(curves, metric);
    if (own.length && others.length && !alike(curves[metric], curves[others[0]])) {
      charts.push([`${name}, training data`, own, metric]);
      charts.push([`${name}, evaluation data, per position`, others, metric]);
    } else if (own.length || others.length) {
      charts.push([name, [...own, ...others], metric]);
    }
  }
  return charts;
}

/** A loss with penalties, summed over all positions, cannot be compared with one per position. */
function alike(one, other) {
  const at = one.findIndex((value, i) => value !== null && other[i] !== null);
  const [a, b] = [Math.abs(one[at] ?? 0), Math.abs(other[at] ?? 0)];
  return a < 20 * b && b < 20 * a;
}
