// What the model is, how it does in all, and label by label.

function showSummary() {
  const { model, scores = [], notes } = data;
  const facts = [...model.sizes];
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
          ...facts.flatMap(([name, size]) => [make("dt", {}, name), make("dd", {}, figure(size))]),
        ),
      ),
      make("div", {}, make("h3", {}, "Parameters that were set"), parameters),
      make("div", {}, make("h3", {}, "Decoding"), make("p", {}, DECODING[model.decode])),
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

/**
 * A table that its headings sort.
 * @param {object[]} rows
 * @param {object[]} columns - of each `name`, `key` of what it is sorted by, `show`, which makes
 *   what it shows of a row, and `text` if that is no number
 * @param {string} first - key of the column that it is sorted by at first
 */
function sortedTable(name, rows, columns, first) {
  const body = make("tbody");
  const heads = columns.map((column) =>
    make(
      "th",
      { scope: "col" },
      make("button", { type: "button", click: () => sortBy(column) }, column.name),
    ),
  );
  let state = { column: null, down: false };
  const sortBy = (column) => {
    const down = state.column === column ? !state.down : !column.text;
    state = { column, down };
    const compare = column.text
      ? (a, b) => a[column.key].localeCompare(b[column.key])
      : (a, b) => a[column.key] - b[column.key];
    const sorted = [...rows].sort((a, b) => (down ? -compare(a, b) : compare(a, b)));
    body.replaceChildren(
      ...sorted.map((row) =>
        make(
          "tr",
          {},
          ...columns.map((c) => make("td", { class: c.text ? "text" : null }, c.show(row))),
        ),
      ),
    );
    heads.forEach((head, i) =>
      head.setAttribute(
        "aria-sort",
        columns[i] !== column ? "none" : down ? "descending" : "ascending",
      ),
    );
  };
  sortBy(columns.find((column) => column.key === first));
  return make(
    "div",
    { class: "scroll tall" },
    make(
      "table",
      { class: "sorted", "aria-label": name },
      make("thead", {}, make("tr", {}, ...heads)),
      body,
    ),
  );
}

/** A share of a whole as a bar, with a text behind it. */
function sizeBar(size, text) {
  const bar = make("span", { class: "bar" });
  bar.style.setProperty("--size", `${(100 * size).toFixed(1)}%`);
  return make("span", { class: "bar-cell" }, bar, text);
}
