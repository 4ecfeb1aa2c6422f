// Features of the model: gain by feature and window offset, or the largest weights of a label.

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
  // Many offsets get narrow cells, so that all of them can be seen.
  const width = offsets.length <= 11 ? "" : offsets.length <= 21 ? " slim" : " bare";
  const ofOffset = (offset, j) => ({
    name: offset === 0 ? "0" : figure(offset).replace(/^(\d)/, "+$1"),
    tight: true,
    key: `at${j}`,
    show: (row) =>
      heatChip(
        row.shares[j],
        largest,
        `${row.name} at offset ${offset}: ${share(row.shares[j])} of all gain`,
        width,
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
      ? "The other columns show it by offset in the window, in %."
      : "";
  return [
    make("p", { class: "quiet" }, `Share of the total gain of all splits, by feature. ${about}`),
    sortedTable("Feature importance", rows, columns, "total"),
  ];
}

function heatChip(value, largest, tip, width) {
  const level = value / largest;
  const text = width === " bare" || !value ? "" : (100 * value).toFixed(width ? 1 : 2);
  const chip = make(
    "span",
    { class: `heat-chip above${strength(level)}${width}`, "data-tip": tip },
    text,
  );
  chip.style.setProperty("--level", `${(100 * level).toFixed(1)}%`);
  return chip;
}

function showWeights() {
  const { labels: byLabel } = data.features;
  const bars = make("div", { class: "weights" });
  let shown = 0;
  const update = (code) => {
    const { names, weights } = byLabel[code];
    const largest = Math.max(...weights.map(Math.abs), 1e-12);
    bars.replaceChildren(...names.map((name, i) => patternRow([name], weights[i], largest)));
    shown = code;
  };
  const { field } = chooser(
    "Label",
    byLabel.map((_, code) => [code, labelText(code)]),
    update,
  );
  update(0);
  return [
    make("p", { class: "quiet" }, "The attributes with the largest positive and negative weights."),
    make("div", { class: "tools" }, field),
    exportable("weights", bars, () => [
      ["label", "attribute", "weight"],
      ...byLabel[shown].names.map((name, i) => [
        labelText(Number(shown)),
        name,
        byLabel[shown].weights[i],
      ]),
    ]),
  ];
}
