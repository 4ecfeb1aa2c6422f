// Tables that can be sorted by a click on the head of a column.

/**
 * @param {string} name - what it shows
 * @param {object[]} rows
 * @param {object[]} columns - each has a `name`; a `key`, the entry of a row that is used to sort and
 *   is saved as CSV; `show`, a function from a row to the contents of the cell; `text`, true unless
 *   it is a number; `tight`, true for little space around it
 * @param {string} first - key of the column that it is sorted by at first
 */
function sortedTable(name, rows, columns, first) {
  const body = make("tbody");
  const heads = columns.map((column) =>
    make(
      "th",
      { scope: "col", class: column.tight ? "tight" : null },
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
          ...columns.map((c) =>
            make("td", { class: c.text ? "text" : c.tight ? "tight" : null }, c.show(row)),
          ),
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
  const table = make(
    "div",
    { class: "scroll tall" },
    make(
      "table",
      { class: "sorted", "aria-label": name },
      make("thead", {}, make("tr", {}, ...heads)),
      body,
    ),
  );
  return exportable(fileName(name.toLowerCase()), table, () => [
    columns.map((column) => column.name),
    ...rows.map((row) => columns.map((column) => row[column.key])),
  ]);
}

/** A table that is not sorted: the names of the columns, and rows of texts or elements. */
function plainTable(head, rows) {
  const line = (tag, cells) => make("tr", {}, ...cells.map((cell) => make(tag, {}, cell)));
  return make(
    "div",
    { class: "scroll" },
    make(
      "table",
      { class: "plain" },
      make("thead", {}, line("th", head)),
      make("tbody", {}, ...rows.map((row) => line("td", row))),
    ),
  );
}

/** A share of a whole as a bar, with a text behind it. */
function sizeBar(size, text) {
  const bar = make("span", { class: "bar" });
  bar.style.setProperty("--size", `${(100 * size).toFixed(1)}%`);
  return make("span", { class: "bar-cell" }, bar, text);
}
