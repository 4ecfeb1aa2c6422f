// Labels: which follow which, and which are confused with which.

function showPairs() {
  const { from, to, weight } = data.pairs;
  const size = data.model.labels.length;
  const weights = new Map();
  const importance = new Float64Array(size);
  let largest = 1e-12;
  weight.forEach((value, i) => {
    weights.set(from[i] * size + to[i], value);
    importance[from[i]] += Math.abs(value);
    importance[to[i]] += Math.abs(value);
    largest = Math.max(largest, Math.abs(value));
  });
  const shown = largestLabels(importance);
  const names = shown.map(labelText);
  const map = heatMap({
    name: "Weights of label pairs",
    rows: names,
    columns: names,
    codes: shown,
    corner: ["label →", "previous ↓"],
    cell: (i, j) => {
      const value = weights.get(shown[i] * size + shown[j]);
      if (value === undefined) return null;
      return {
        level: value / largest,
        tip: `${names[i]} → ${names[j]}: ${figure(value)}`,
        text: shown.length <= 12 ? value.toFixed(1).replace("-", "−") : "",
      };
    },
  });
  return [
    make("p", { class: "quiet" }, "Weights of label pairs: blue pairs are more probable, orange ones less."),
    colourKey(figure(-largest), figure(largest)),
    exportable("transitions", map, () => [
      ["from", "to", "weight"],
      ...weight.map((value, i) => [labelText(from[i]), labelText(to[i]), value]),
    ]),
    limitNote(shown, size),
  ];
}

function limitNote(shown, size) {
  if (shown.length === size) return null;
  return make(
    "p",
    { class: "quiet" },
    `${shown.length} of ${count(size)} labels are shown, the most important ones.`,
  );
}

function showPatterns() {
  const { patterns, weight } = data.patterns;
  const names = patterns.map((codes) => codes.map(labelText));
  const largest = Math.max(...weight.map(Math.abs), 1e-12);
  const orders = {
    heaviest: (a, b) => Math.abs(weight[b]) - Math.abs(weight[a]),
    highest: (a, b) => weight[b] - weight[a],
    lowest: (a, b) => weight[a] - weight[b],
    longest: (a, b) => patterns[b].length - patterns[a].length || orders.heaviest(a, b),
  };
  let shown = [];
  const list = new VirtualList(
    "Label patterns",
    28,
    (i) => patternRow(names[shown[i]], weight[shown[i]], largest),
    () => {},
  );
  const search = make("input", {
    type: "search",
    placeholder: "labels, such as a b",
    "aria-label": "Search label patterns",
    input: () => update(),
  });
  const { select, field } = chooser(
    "Order",
    [
      ["heaviest", "largest absolute weight first"],
      ["highest", "highest weight first"],
      ["lowest", "lowest weight first"],
      ["longest", "longest pattern first"],
    ],
    () => update(),
  );
  const update = () => {
    const query = search.value.trim().toLowerCase();
    shown = [...patterns.keys()]
      .filter((i) => names[i].join(" ").toLowerCase().includes(query))
      .sort(orders[select.value]);
    list.setSize(shown.length);
  };
  update();
  return [
    make("div", { class: "tools" }, field, search),
    exportable("label-patterns", list.element, () => [
      ["pattern", "weight"],
      ...weight.map((value, i) => [names[i].join(" "), value]),
    ]),
  ];
}

function patternRow(names, weight, largest) {
  const bar = make("span", { class: weight < 0 ? "side below" : "side above" });
  bar.style.setProperty("--size", `${((50 * Math.abs(weight)) / largest).toFixed(1)}%`);
  return make(
    "div",
    { class: "pattern" },
    make("span", { class: "names" }, names.join(" → ")),
    make("span", { class: "sides" }, bar),
    make("span", { class: "number" }, figure(weight)),
  );
}

function showConfusion(onPick) {
  const { truth, predicted, count: counts } = data.confusion;
  const cells = new Map(
    counts.map((number, i) => [truth[i] * labels.length + predicted[i], number]),
  );
  const rows = labelScores(data.confusion);
  const sums = new Float64Array(labels.length);
  let worst = 1;
  for (const row of rows) sums[row.code] = row.truth + row.predicted;
  counts.forEach(
    (number, i) => (worst = truth[i] === predicted[i] ? worst : Math.max(worst, number)),
  );
  const shown = largestLabels(sums).filter((code) => sums[code]);
  const names = shown.map(labelText);
  const totals = new Map(rows.map((row) => [row.code, row.truth]));
  const map = heatMap({
    name: "Confusion matrix",
    rows: names,
    columns: names,
    codes: shown,
    corner: ["predicted →", "true ↓"],
    onPick: (i, j) => onPick(shown[i], shown[j]),
    cell: (i, j) => {
      const number = cells.get(shown[i] * labels.length + shown[j]) ?? 0;
      const pair = `true ${names[i]}, predicted ${names[j]}`;
      if (!number) return { level: 0, tip: `${pair}: none` };
      const part = share(number / totals.get(shown[i]));
      const tip = `${pair}: ${plural(number, "position")}, ${part} of ${names[i]}`;
      const level = i === j ? (0.5 * number) / totals.get(shown[i]) : -Math.sqrt(number / worst);
      return { level, tip, text: shown.length <= 30 ? count(number) : "" };
    },
  });
  const table = sortedTable(
    "Scores of labels",
    rows,
    [
      { name: "Label", key: "label", text: true, show: (row) => labelTag(row.code) },
      {
        name: "Precision",
        key: "precision",
        show: (row) => sizeBar(row.precision, share(row.precision)),
      },
      { name: "Recall", key: "recall", show: (row) => sizeBar(row.recall, share(row.recall)) },
      { name: "F1", key: "f1", show: (row) => sizeBar(row.f1, share(row.f1)) },
      { name: "True", key: "truth", show: (row) => count(row.truth) },
      { name: "Predicted", key: "predicted", show: (row) => count(row.predicted) },
    ],
    "truth",
  );
  return [
    make(
      "p",
      { class: "quiet" },
      "Errors are orange, in a stronger colour where there are more; click a cell to see its sequences.",
    ),
    make(
      "div",
      { class: shown.length > 12 ? "stacked" : "beside halves" },
      make(
        "div",
        {},
        exportable("confusion", map, () => [
          ["true", "predicted", "positions"],
          ...counts.map((number, i) => [labelText(truth[i]), labelText(predicted[i]), number]),
        ]),
        limitNote(shown, rows.length),
      ),
      make("div", {}, make("h3", {}, "Scores by label"), table),
    ),
  ];
}
