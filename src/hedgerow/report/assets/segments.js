// Segments: runs of one label, or chunks; whether they were found, and how long they are.

function showSegments() {
  const { kind, names, matched, true: real, predicted } = data.segments;
  const rows = names
    .map((name, code) => {
      const [n, guessed, found] = [real.count[code], predicted.count[code], matched[code]];
      return {
        name,
        code,
        n,
        guessed,
        precision: guessed ? found / guessed : 0,
        recall: n ? found / n : 0,
        f1: found ? (2 * found) / (n + guessed) : 0,
        mean: real.mean[code],
        guessedMean: predicted.mean[code],
        median: real.median[code],
        guessedMedian: predicted.median[code],
      };
    })
    .filter(({ n, guessed }) => n || guessed);
  const both = (real, guess) => `${figure(real)} / ${figure(guess)}`;
  const nameOf = (row) => (kind === "runs" ? labelTag(row.code) : row.name);
  const table = sortedTable(
    "Scores of segments",
    rows,
    [
      { name: "Label", key: "name", text: true, show: nameOf },
      ...["precision", "recall", "f1"].map((key) => ({
        name: key === "f1" ? "F1" : key[0].toUpperCase() + key.slice(1),
        key,
        show: (row) => sizeBar(row[key], share(row[key])),
      })),
      { name: "True", key: "n", show: (row) => count(row.n) },
      { name: "Predicted", key: "guessed", show: (row) => count(row.guessed) },
      { name: "Mean length", key: "mean", show: (row) => both(row.mean, row.guessedMean) },
      { name: "Median length", key: "median", show: (row) => both(row.median, row.guessedMedian) },
    ],
    "n",
  );
  const what =
    kind === "runs"
      ? "A segment is a run of positions with the same label. "
      : "A segment is a chunk, such as B-NP I-NP. ";
  const holder = make("div", {});
  const options = [["all", "all labels"], ...rows.map(({ code, name }) => [code, name])];
  const { field } = chooser("Lengths of", options, (value) => update(value));
  const update = (value) => holder.replaceChildren(lengthChart(value));
  update("all");
  return [
    make("p", { class: "quiet" },       `${what}It counts as correct if its label, start and end are all correct. ` +
        "Lengths are shown as true / predicted.",
    ),
    table,
    make("div", { class: "tools" }, field),
    holder,
  ];
}

/** Histograms of the lengths of true and of predicted segments. */
function lengthChart(choice) {
  const { bins, names, true: real, predicted } = data.segments;
  const codes = choice === "all" ? [...names.keys()] : [Number(choice)];
  const sum = (side) => bins.map((_, b) => codes.reduce((n, code) => n + side.histogram[code][b], 0));
  const sides = [
    { name: "true", counts: sum(real), style: "first" },
    { name: "predicted", counts: sum(predicted), style: "second" },
  ];
  const binName = (b) => {
    const low = b ? bins[b - 1] + 1 : 1;
    return low === bins[b] ? count(low) : `${count(low)}–${count(bins[b])}`;
  };
  const paint = (width) => {
    const { height, left, right, top, bottom } = CHART;
    const most = Math.max(1, ...sides.flatMap(({ counts }) => counts));
    const step = (width - left - right) / bins.length;
    const x = (b) => left + (b + 0.5) * step;
    const y = (number) => height - bottom - ((height - top - bottom) * number) / most;
    const widest = 7 * Math.max(...bins.map((_, b) => binName(b).length));
    const every = Math.ceil(widest / step);
    return draw(
      "svg",
      { width, height, role: "img", "aria-label": "Lengths of segments" },
      axes(width, height, x, y, {
        xTicks: bins.map((_, b) => b).filter((b) => b % every === 0),
        yTicks: ticks(0, most, 5).filter(Number.isInteger),
        xName: "length of a segment, in positions",
        yName: "number of segments",
        xFormat: binName,
      }),
      ...sides.flatMap(({ counts, name, style }, side) =>
        counts.map((number, b) =>
          draw("rect", {
            class: `column ${style}`,
            x: x(b) + (side - 1) * step * 0.42,
            width: Math.max(1, step * 0.4),
            y: y(number),
            height: y(0) - y(number),
            "data-tip": `${binName(b)}: ${count(number)} ${name}`,
          }),
        ),
      ),
    );
  };
  const caption = make(
    "figcaption",
    {},
    make("b", {}, "Lengths"),
    ...sides.map(({ name, style }) => legend(name, `block ${style}`)),
  );
  return exportable("segment-lengths", make("figure", {}, caption, responsive(paint)), () => [
    ["length from", "length to", "true", "predicted"],
    ...bins.map((high, b) => [
      b ? bins[b - 1] + 1 : 1,
      high,
      ...sides.map(({ counts }) => counts[b]),
    ]),
  ]);
}
