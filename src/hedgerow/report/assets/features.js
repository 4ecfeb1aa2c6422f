// What the model looks at: gain by feature and window offset, or the heaviest weights of a label.

function showFeatures() {
  return data.features.kind === "gain" ? showGains() : showWeights();
}

function showGains() {
  const { names, offsets, shares } = data.features;
  const totals = shares.map((row) => row.reduce((sum, value) => sum + value, 0));
  const largest = Math.max(...shares.flat());
  const rows = names.map((name, i) => ({
    name,
    total: totals[i],
    shares: shares[i],
    ...Object.fromEntries(shares[i].map((value, j) => [`at${j}`, value])),
  }));
  const ofOffset = (offset, j) => ({
    name: offset === 0 ? "0" : figure(offset).replace(/^(\d)/, "+$1"),
    key: `at${j}`,
    show: (row) =>
      heatChip(
        row.shares[j],
        largest,
        `${row.name} at offset ${offset}: ${share(row.shares[j])} of all gain`,
      ),
  });
  const columns = [
    {
      name: "Feature",
      key: "name",
      text: true,
      show: (row) => make("span", { "data-tip": row.name }, shorten(row.name, 48)),
    },
    {
      name: "Share of gain",
      key: "total",
      show: (row) => sizeBar(row.total / totals[0], share(row.total)),
    },
    ...(offsets.length > 1 ? offsets.map(ofOffset) : []),
  ];
  const about =
    offsets.length > 1
      ? "The columns on the right say at which offset of the window it is looked at."
      : "";
  return [
    make("p", { class: "quiet" }, `How much of the gain of all splits each feature has. ${about}`),
    sortedTable("Importance of features", rows, columns, "total"),
  ];
}

function heatChip(value, largest, tip) {
  const level = value / largest;
  const chip = make(
    "span",
    { class: `heat-chip above${strength(level)}`, "data-tip": tip },
    value ? share(value) : "",
  );
  chip.style.setProperty("--level", `${(100 * level).toFixed(1)}%`);
  return chip;
}

function showWeights() {
  const { labels: byLabel } = data.features;
  const bars = make("div", { class: "weights" });
  const update = (code) => {
    const { names, weights } = byLabel[code];
    const largest = Math.max(...weights.map(Math.abs), 1e-12);
    bars.replaceChildren(...names.map((name, i) => patternRow([name], weights[i], largest)));
  };
  const { field } = chooser(
    "Label",
    byLabel.map((_, code) => [code, labelText(code)]),
    update,
  );
  update(0);
  return [
    make("p", { class: "quiet" }, "The largest and the lowest weights of a label's attributes."),
    make("div", { class: "tools" }, field),
    bars,
  ];
}
