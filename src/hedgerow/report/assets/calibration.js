// Calibration: how often a label is correct, by its predicted probability.

function showCalibration() {
  const { errors, counts, probs, right } = data.calibration;
  const summary = make("p", {});
  const holder = make("div", {});
  const update = (row) => {
    summary.replaceChildren(
      "Expected calibration error ",
      make("b", {}, share(errors[row])),
      ": the mean vertical distance of the points from the diagonal, weighted by the number of positions.",
    );
    const caption = make(
      "figcaption",
      {},
      legend("share where the label is right", "first"),
      legend("perfectly calibrated", "dashed"),
      legend("number of positions, not to scale", "block soft"),
    );
    const chart = responsive((width) => drawReliability(Number(row), width));
    holder.replaceChildren(
      exportable("calibration", make("figure", {}, caption, chart), () => [
        ["bin", "positions", "mean probability", "share right"],
        ...counts[row].map((number, bin) => [bin, number, probs[row][bin], right[row][bin]]),
      ]),
    );
  };
  const options = [
    [0, "the most probable label"],
    ...data.model.labels.map((_, code) => [code + 1, labelText(code)]),
  ];
  const { field } = chooser("Probability of", options, update);
  update(0);
  const rows = data.model.labels.map((label, code) => ({ label, code, error: errors[code + 1] }));
  const worst = Math.max(...rows.map(({ error }) => error), 1e-12);
  const table = sortedTable(
    "Calibration error by label",
    rows,
    [
      { name: "Label", key: "label", text: true, show: (row) => labelTag(row.code) },
      {
        name: "Calibration error",
        key: "error",
        show: (row) => sizeBar(row.error / worst, share(row.error)),
      },
    ],
    "error",
  );
  return [
    make("div", { class: "tools" }, field),
    summary,
    make("div", { class: "beside wide-left" }, holder, table),
  ];
}

function drawReliability(row, width) {
  const { counts, probs, right } = data.calibration;
  const { left, right: margin, top, bottom } = CHART;
  const height = Math.min(400, width);
  const x = (value) => left + (width - left - margin) * value;
  const y = (value) => height - bottom - (height - top - bottom) * value;
  const tenths = [0, 0.2, 0.4, 0.6, 0.8, 1];
  const most = Math.max(...counts[row], 1);
  const bins = counts[row]
    .map((number, bin) => ({ number, prob: probs[row][bin], right: right[row][bin], bin }))
    .filter(({ number }) => number);
  const size = 1 / counts[row].length;
  return draw(
    "svg",
    { width, height, role: "img", "aria-label": "Reliability diagram" },
    axes(width, height, x, y, {
      xTicks: tenths,
      yTicks: tenths,
      xName: "predicted probability",
      yName: "share of positions where the label is right",
      xFormat: shortShare,
      yFormat: shortShare,
    }),
    ...bins.map(({ number, bin }) =>
      draw("rect", {
        class: "histogram",
        x: x(bin * size) + 1,
        width: Math.max(1, x(size) - x(0) - 2),
        y: y((0.3 * number) / most),
        height: y(0) - y((0.3 * number) / most),
      }),
    ),
    draw("line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
    draw("path", {
      class: "curve first",
      d: pathOf(
        bins.map((bin) => bin.right),
        (i) => x(bins[i - 1].prob),
        y,
      ),
    }),
    ...bins.map((bin) =>
      draw("circle", {
        class: "point",
        cx: x(bin.prob),
        cy: y(bin.right),
        r: 5,
        tabindex: 0,
        "data-tip": [
          plural(bin.number, "position"),
          `probability ${share(bin.prob)}`,
          `right ${share(bin.right)}`,
        ].join("\n"),
      }),
    ),
  );
}
