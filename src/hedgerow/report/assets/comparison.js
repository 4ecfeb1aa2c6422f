// Two models on the same data: their scores, a test, and which of them is right where.

function showComparison(onPick) {
  const { names, scores, n_differ: n, p_value: p } = data.comparison;
  const differ = `The models label ${count(n)} of ${plural(data.n_positions, "position")} differently.`;
  if (!scores) return [make("p", {}, differ)];
  const [first, second] = names.map((name, i) => (names[0] === names[1] ? `${name} ${"AB"[i]}` : name));
  return [
    make("p", { class: "quiet" }, `First model: ${first}. Second model: ${second}. ${differ}`),
    scoreTable(scores, first, second),
    make(
      "p",
      { class: "quiet" },
      "Intervals and p-values are from a bootstrap over whole sequences.",
    ),
    make(
      "div",
      { class: "beside halves" },
      outcomeTable("Positions", data.comparison.positions, first, second, onPick),
      make(
        "div",
        {},
        outcomeTable("Whole sequences", data.comparison.sequences, first, second, null),
        make("p", { class: "quiet" }, `McNemar's test on whole sequences: ${p < 0.001 ? "p" : "p ="} ${pValue(p)}.`),
      ),
    ),
    make("h3", {}, "Positions by true label"),
    labelOutcomes(first, second),
  ];
}

function scoreTable(scores, first, second) {
  const isShare = (score) => !score.name.startsWith("Log");
  const show = (score, value) => (isShare(score) ? share(value) : figure(value));
  const rows = scores.map((score) => {
    const [a, b] = score.values;
    const difference = a === null || b === null ? null : a - b;
    return [
      score.name,
      show(score, a),
      show(score, b),
      isShare(score) ? points(difference) : figure(difference),
      score.interval ? score.interval.map(points).join(" to ") : "",
      score.p_value === undefined ? "" : pValue(score.p_value),
    ];
  });
  const head = ["", first, second, "Difference", "95 % interval", "p"];
  return exportable("comparison", plainTable(head, rows), () => [
    ["score", first, second, "difference low", "difference high", "p"],
    ...scores.map((score) => [
      score.name,
      ...score.values,
      ...(score.interval ?? ["", ""]),
      score.p_value ?? "",
    ]),
  ]);
}

/** A difference of two shares, in percentage points. */
function points(difference) {
  const text = (100 * difference).toFixed(2).replace("-", "−");
  return `${difference > 0 ? "+" : ""}${text} points`;
}

function pValue(p) {
  return p < 0.001 ? "< 0.001" : p.toFixed(3);
}

/** How often both models are right, one of them, or neither; a cell can be chosen. */
function outcomeTable(title, cells, first, second, onPick) {
  const all = Math.max(1, cells.both + cells.only_a + cells.only_b + cells.neither);
  const grid = [
    [["both", ""], ["only_a", "onlyFirst"]],
    [["only_b", "onlySecond"], ["neither", "neither"]],
  ];
  const map = heatMap({
    name: title,
    rows: [`${first} right`, `${first} wrong`],
    columns: [`${second} right`, `${second} wrong`],
    corner: [],
    onPick: onPick && ((i, j) => grid[i][j][1] && onPick(grid[i][j][1])),
    cell: (i, j) => {
      const number = cells[grid[i][j][0]];
      const level = (i === j ? 0.5 : -1) * Math.sqrt(number / all);
      const tip = `${count(number)}, ${share(number / all)}`;
      return { level: j === 1 && i === 1 ? -Math.abs(level) : level, tip, text: count(number) };
    },
  });
  return make("div", {}, make("h3", {}, title), map);
}

function labelOutcomes(first, second) {
  const by = data.comparison.labels;
  const rows = labels
    .map((label, code) => ({
      label,
      code,
      total: by.total[code],
      a: by.only_a[code],
      b: by.only_b[code],
      neither: by.neither[code],
    }))
    .filter((row) => row.total);
  const part = (row, key) => `${count(row[key])} (${share(row[key] / row.total)})`;
  return sortedTable(
    "Which model is correct",
    rows,
    [
      { name: "Label", key: "label", text: true, show: (row) => labelTag(row.code) },
      { name: "Positions", key: "total", show: (row) => count(row.total) },
      { name: `Only ${first} right`, key: "a", show: (row) => part(row, "a") },
      { name: `Only ${second} right`, key: "b", show: (row) => part(row, "b") },
      { name: "Both wrong", key: "neither", show: (row) => part(row, "neither") },
    ],
    "total",
  );
}
