// Heat maps: tables whose cells are coloured by a number. One cell has the focus; arrows move it.

/**
 * @param {object} grid
 * @param {string} grid.name - what it shows
 * @param {string[]} grid.rows, grid.columns - names
 * @param {number[]} [grid.codes] - the labels that rows and columns stand for
 * @param {string[]} grid.corner - what columns and rows are
 * @param {function(number, number): object} grid.cell - of a cell: `level` from -1 to 1, `tip`,
 *   and perhaps `text`, or null where there is nothing
 * @param {function(number, number): void} [grid.onPick] - called with a cell that was chosen
 */
function heatMap({ name, rows, columns, codes, corner, cell, onPick }) {
  const mark = (i) => (codes ? swatch(codes[i]) : null);
  const head = make(
    "tr",
    {},
    make("th", { class: "corner", scope: "col" }, ...corner.map((text) => make("div", {}, text))),
    ...columns.map((text, j) =>
      make("th", { scope: "col", "data-tip": text }, make("span", {}, mark(j), shorten(text, columns.length <= 4 ? 40 : 14))),
    ),
  );
  const body = rows.map((text, i) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", "data-tip": text }, mark(i), shorten(text, 28)),
      ...columns.map((_, j) => heatCell(cell(i, j), i, j)),
    ),
  );
  const table = make(
    "table",
    { class: "heat", role: "grid", "aria-label": name },
    make("thead", {}, head),
    make("tbody", {}, ...body),
  );
  if (columns.length > 8 && columns.some((text) => text.length > 2)) table.classList.add("upright");
  table.classList.add(rows.length <= 6 ? "large" : rows.length <= 14 ? "medium" : "small");
  table.querySelector("tbody td")?.setAttribute("tabindex", 0);
  table.addEventListener("keydown", (event) => moveInGrid(event, table, onPick));
  if (onPick) {
    table.classList.add("pickable");
    table.addEventListener("click", (event) => {
      const spot = event.target.closest("td");
      if (spot) onPick(Number(spot.dataset.i), Number(spot.dataset.j));
    });
  }
  return make("div", { class: "scroll" }, table);
}

function heatCell(content, i, j) {
  const spot = make("td", { tabindex: -1, "data-i": i, "data-j": j });
  if (content === null) {
    spot.className = "none";
    return spot;
  }
  const level = Math.max(-1, Math.min(1, content.level));
  spot.className = (level < 0 ? "below" : "above") + strength(Math.abs(level));
  spot.style.setProperty("--level", `${(100 * Math.abs(level)).toFixed(1)}%`);
  spot.dataset.tip = content.tip;
  spot.setAttribute("aria-label", content.tip);
  if (content.text) spot.textContent = content.text;
  return spot;
}

function moveInGrid(event, table, onPick) {
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const spot = event.target.closest("td");
  if (!spot) return;
  const [i, j] = [Number(spot.dataset.i), Number(spot.dataset.j)];
  if (event.key in moves) {
    event.preventDefault();
    const [down, right] = moves[event.key];
    const next = table.tBodies[0].rows[i + down]?.cells[j + right + 1];
    if (!next || next.tagName !== "TD") return;
    spot.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  } else if (onPick && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    onPick(i, j);
  }
}

/** The labels to show in a map: all, or the most important ones, in their own order. */
function largestLabels(weights, most = 60) {
  const codes = [...weights.keys()];
  if (codes.length <= most) return codes;
  return codes
    .sort((a, b) => weights[b] - weights[a])
    .slice(0, most)
    .sort((a, b) => a - b);
}

/** A strip that explains the colours. */
function colourKey(low, high) {
  const strip = make("span", { class: "strip" });
  return make("p", { class: "key" }, make("span", {}, low), strip, make("span", {}, high));
}
