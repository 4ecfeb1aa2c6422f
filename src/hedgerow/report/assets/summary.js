// A description of the model, and its scores overall and by label.

function showSummary() {
  const { model, scores = [], notes } = data;
  const facts = [...model.sizes];
  if (data.source) {
    facts.push(["Data file", data.source.name]);
    if (data.source.modified) facts.push(["Last changed", data.source.modified]);
  }
  if (data.n_sequences !== undefined) {
    facts.push(
      ["Sequences in the data", data.n_sequences],
      ["Positions in the data", data.n_positions],
    );
  }
  const parameters = model.parameters.length
    ? make(
        "dl",
        { class: "facts" },
        ...model.parameters.flatMap(([name, value]) => [
          make("dt", {}, make("code", {}, name)),
          make("dd", {}, make("code", {}, value)),
        ]),
      )
    : make("p", { class: "quiet" }, "All parameters have their default values.");
  return [
    scores.length ? make("div", { class: "cards" }, ...scores.map(scoreCard)) : null,
    make(
      "div",
      { class: "columns" },
      make(
        "div",
        {},
        make("h3", {}, model.kind),
        make(
          "dl",
          { class: "facts" },
          ...facts.flatMap(([name, size]) => [
            make("dt", {}, name),
            make("dd", {}, typeof size === "number" ? figure(size) : size),
          ]),
        ),
      ),
      make("div", {}, make("h3", {}, "Non-default parameters"), parameters),
      make("div", {}, make("h3", {}, "Decoding"), ...showDecoders()),
    ),
    notes.length
      ? make("ul", { class: "notes" }, ...notes.map((note) => make("li", {}, note)))
      : null,
  ];
}

const DECODING = {
  viterbi: "The most probable labelling of each sequence as a whole (Viterbi).",
  marginal: "The most probable label of each position, by its marginals.",
};

/** What the decoder does, and both decoders next to each other. */
function showDecoders() {
  const about = make("p", {}, DECODING[data.model.decode]);
  if (!data.decoders) return [about];
  const { names, rows, n_differ: n } = data.decoders;
  return [
    about,
    rows.length
      ? plainTable(
          ["", ...names],
          rows.map(([name, ...values]) => [name, ...values.map(share)]),
        )
      : null,
    make(
      "p",
      { class: "quiet" },
      `The two decoders differ at ${count(n)} of ${plural(data.n_positions, "position")}.`,
    ),
  ];
}

function scoreCard({ name, value, kind, interval }) {
  const text = kind === "share" ? share(value) : value === null ? "−∞" : figure(value);
  return make(
    "div",
    { class: "card" },
    make("b", {}, text),
    make("span", {}, name),
    interval === null
      ? null
      : make(
          "small",
          { title: "95 % confidence interval: whole sequences were resampled" },
          `95 %: ${share(interval[0])} to ${share(interval[1])}`,
        ),
  );
}

/** Precision, recall and F1 of each label, from the confusion. */
function labelScores({ truth, predicted, count: counts }) {
  const rows = labels.map((label, code) => ({ label, code, truth: 0, predicted: 0, right: 0 }));
  counts.forEach((number, cell) => {
    rows[truth[cell]].truth += number;
    rows[predicted[cell]].predicted += number;
    if (truth[cell] === predicted[cell]) rows[truth[cell]].right += number;
  });
  for (const row of rows) {
    row.precision = row.predicted ? row.right / row.predicted : 0;
    row.recall = row.truth ? row.right / row.truth : 0;
    row.f1 = row.right ? (2 * row.right) / (row.truth + row.predicted) : 0;
  }
  return rows.filter((row) => row.truth || row.predicted);
}
