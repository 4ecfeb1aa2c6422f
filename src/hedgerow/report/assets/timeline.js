// The timeline of a long sequence: marginals, labels, errors and features along its positions.

// Pixels: height of the bands of marginals, of a strip of labels, of the row of errors, of a feature,
// of the axis and of the overview; space between them; what is left for names.
const TIMELINE = { bands: 130, strip: 15, errors: 9, feature: 64, axis: 20, overview: 26, gap: 5, left: 116 };
const SHORTEST_TIMELINE = 40;
const CLOSEST = 12;
const MAX_FEATURE_ROWS = 6;
// Maximum number of positions that are read for one column of pixels.
const SAMPLES = 12;

class Timeline {
  /** @param {function(number): void} onSelect - called with a position that was clicked */
  constructor(all, onSelect) {
    Object.assign(this, { all, onSelect, rows: [], from: 0, to: 1, begin: 0, end: 0, chosen: -1 });
    this.canvas = make("canvas", {
      tabindex: 0,
      role: "img",
      "aria-label": "Timeline: drag to move, + and − to zoom, click to choose a position",
    });
    this.overview = make("canvas", { class: "overview", "aria-hidden": "true" });
    this.key = make("div", { class: "timeline-key" });
    this.range = make("span", { class: "quiet" });
    this.featureHolder = make("span", { class: "feature-rows" });
    this.figure = make("div", {}, this.key, this.canvas, this.overview);
    this.element = make(
      "div",
      { class: "timeline", hidden: true },
      this.makeTools(),
      exportable("timeline", this.figure, () => this.table()),
    );
    this.listen();
    new ResizeObserver(() => this.paint()).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  makeTools() {
    const button = (text, tip, click) =>
      make("button", { type: "button", class: "turn", "aria-label": tip, "data-tip": tip, click }, text);
    return make(
      "div",
      { class: "tools" },
      button("+", "Zoom in", () => this.zoom(0.5)),
      button("−", "Zoom out", () => this.zoom(2)),
      button("all", "Show the whole sequence", () => this.show(this.begin, this.end)),
      this.all.truth ? button("previous error", "Previous error", () => this.jump(-1)) : null,
      this.all.truth ? button("next error", "Next error", () => this.jump(1)) : null,
      this.range,
      this.featureHolder,
    );
  }

  /** Offers the columns of numbers; the most important ones are shown at first. */
  offerFeatures(columns) {
    this.columns = columns.filter((column) => column.values);
    const ranked = data.features?.kind === "gain" ? data.features.names : [];
    const rank = (column) => (ranked.indexOf(column.name) + 1 || Infinity);
    const byRank = [...this.columns].sort((a, b) => rank(a) - rank(b) || 0);
    this.rows = byRank.slice(0, 2);
    this.nameRows();
  }

  nameRows() {
    const free = this.columns.filter((column) => !this.rows.includes(column));
    const chips = this.rows.map((column) =>
      make(
        "button",
        {
          type: "button",
          class: "turn",
          "data-tip": `Remove ${column.name}`,
          click: () => this.setRows(this.rows.filter((row) => row !== column)),
        },
        `${shorten(column.name, 20)} ×`,
      ),
    );
    const { field, select } = chooser(
      "Features",
      [["", "add…"], ...free.map((column, i) => [i, shorten(column.name, 24)])],
      (value) => value !== "" && this.setRows([...this.rows, free[Number(value)]]),
    );
    select.disabled = this.rows.length >= MAX_FEATURE_ROWS;
    this.featureHolder.replaceChildren(...(this.columns.length ? [field, ...chips] : []));
  }

  setRows(rows) {
    this.rows = rows;
    this.nameRows();
    this.paint();
  }

  /** Shows a sequence, or nothing if it is short. */
  open(begin, end) {
    Object.assign(this, { begin, end });
    this.element.hidden = end - begin <= SHORTEST_TIMELINE;
    this.show(begin, end);
  }

  show(from, to) {
    const size = Math.min(this.end - this.begin, Math.max(CLOSEST, to - from));
    this.from = Math.max(this.begin, Math.min(from, this.end - size));
    this.to = this.from + size;
    this.paint();
  }

  zoom(factor, at = this.isVisible(this.chosen) ? this.chosen : (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  isVisible(t) {
    return t >= this.from && t < this.to;
  }

  /** Marks the position that is selected elsewhere, and scrolls it into view. */
  choose(t) {
    this.chosen = t;
    const half = (this.to - this.from) / 2;
    if (this.isVisible(t)) this.paint();
    else this.show(t - half, t + half);
  }

  jump(direction) {
    let t = this.chosen + direction;
    while (t >= this.begin && t < this.end && !this.all.isWrong(t)) t += direction;
    if (t < this.begin || t >= this.end) return;
    if (this.to - this.from === this.end - this.begin) this.show(t - 60, t + 60);
    this.onSelect(t);
  }

  listen() {
    const place = (event) => this.positionAt(event.clientX - this.canvas.getBoundingClientRect().left);
    let drag = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, from: this.from, moved: false };
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (drag) {
        const shift = ((event.clientX - drag.x) * (this.to - this.from)) / this.width;
        drag.moved ||= Math.abs(event.clientX - drag.x) > 4;
        if (drag.moved) this.show(drag.from - shift, drag.from - shift + this.to - this.from);
      } else this.showTip(event, place(event));
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved) this.onSelect(place(event));
      drag = null;
    });
    this.canvas.addEventListener("pointerleave", () => (document.getElementById("tip").hidden = true));
    this.canvas.addEventListener("dblclick", (event) => this.zoom(0.25, place(event)));
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.shiftKey) return; // the page scrolls
        event.preventDefault();
        this.zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, place(event));
      },
      { passive: false },
    );
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    const move = (event) => {
      if (event.buttons !== 1) return;
      const x = event.clientX - this.overview.getBoundingClientRect().left - TIMELINE.left;
      const middle = this.begin + (x / this.width) * (this.end - this.begin);
      const half = (this.to - this.from) / 2;
      this.show(middle - half, middle + half);
    };
    for (const name of ["pointerdown", "pointermove"]) this.overview.addEventListener(name, move);
  }

  onKey(event) {
    const size = this.to - this.from;
    const actions = {
      "+": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      ArrowLeft: () => this.onSelect(Math.max(this.begin, this.chosen - 1)),
      ArrowRight: () => this.onSelect(Math.min(this.end - 1, this.chosen + 1)),
      PageUp: () => this.show(this.from - size, this.from),
      PageDown: () => this.show(this.to, this.to + size),
      Home: () => this.show(this.begin, this.end),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  }

  positionAt(x) {
    const t = Math.floor(this.from + ((x - TIMELINE.left) * (this.to - this.from)) / this.width);
    return Math.max(this.begin, Math.min(this.end - 1, t));
  }

  showTip(event, t) {
    const all = this.all;
    const { codes, probs } = all.tops[0];
    const lines = [`position ${count(t - this.begin)}`, `predicted ${labelText(all.predicted[t])}`];
    if (all.truth) lines.push(`true ${labelText(all.truth[t])}`);
    lines.push(`most probable: ${labelText(codes[t])}, ${roughShare(probs[t])}`);
    for (const { name, values } of this.rows) lines.push(`${name} ${figure(values[t])}`);
    const box = this.canvas.getBoundingClientRect();
    placeTip(
      document.getElementById("tip"),
      lines.join("\n"),
      new DOMRect(event.clientX, box.top, 0, TIMELINE.bands),
    );
  }

  /** Strips of labels, each with its name. */
  strips() {
    const all = this.all;
    const other = data.model.decode === "viterbi" ? "marginals" : "Viterbi";
    const strips = [["predicted", all.predicted]];
    if (all.compared) strips.push(["second model", all.compared]);
    if (data.decoders.n_differ) strips.push([`by ${other}`, all.otherwise]);
    if (all.truth) strips.push(["true", all.truth]);
    return strips;
  }

  paint() {
    const width = Math.floor(this.figure.clientWidth);
    if (this.element.hidden || width < 150) return;
    this.width = width - TIMELINE.left;
    const size = this.to - this.from;
    this.range.textContent =
      `positions ${count(Math.floor(this.from - this.begin))} to ` +
      `${count(Math.ceil(this.to - this.begin) - 1)} of ${count(this.end - this.begin)}`;
    const strips = this.strips();
    const { bands, strip, errors, feature, axis, gap, overview } = TIMELINE;
    const height =
      bands +
      strips.length * (strip + gap) +
      (this.all.truth ? errors + gap : 0) +
      this.rows.length * (feature + gap) +
      axis +
      gap;
    const pen = new Pen(this.canvas, width, height);
    this.drawBands(pen);
    let top = bands + gap;
    for (const [name, codes] of strips) {
      this.drawStrip(pen, name, codes, top, this.from, this.to, strip);
      top += strip + gap;
    }
    if (this.all.truth) {
      this.drawErrors(pen, top, this.from, this.to, errors);
      pen.name("errors", top + errors);
      top += errors + gap;
    }
    for (const column of this.rows) {
      this.drawFeature(pen, column, top);
      top += feature + gap;
    }
    this.drawAxis(pen, top);
    if (this.isVisible(this.chosen)) {
      const step = Math.max(1, this.width / size);
      pen.frame(TIMELINE.left + ((this.chosen - this.from) * this.width) / size, 0, step, top);
    }
    this.drawOverview(new Pen(this.overview, width, overview));
    this.drawKey();
  }

  /** Calls back with columns of whole pixels: where each is, how wide, and its positions. */
  eachColumn(from, to, draw) {
    const size = to - from;
    const start = Math.floor(from);
    const isClose = size <= this.width; // a position has at least one pixel
    const n = isClose ? Math.ceil(to) - start : Math.floor(this.width);
    const edge = (t) => Math.round(Math.max(0, Math.min(1, (t - from) / size)) * this.width);
    for (let i = 0; i < n; i++) {
      const first = isClose ? start + i : Math.floor(from + (i * size) / n);
      const stop = isClose ? first + 1 : Math.max(first + 1, Math.floor(from + ((i + 1) * size) / n));
      if (first >= this.end) break;
      const [left, right] = isClose ? [edge(first), edge(stop)] : [i, i + 1];
      if (right > left) draw(TIMELINE.left + left, right - left, first, Math.min(this.end, stop));
    }
  }

  drawBands(pen) {
    const sums = new Float64Array(labels.length + 1);
    const { bands } = TIMELINE;
    this.eachColumn(this.from, this.to, (x, wide, first, stop) => {
      sums.fill(0);
      const stride = Math.max(1, Math.floor((stop - first) / SAMPLES));
      let n = 0;
      for (let t = first; t < stop; t += stride, n++)
        for (const { codes, probs } of this.all.tops) sums[codes[t]] += probs[t] / 255;
      let low = bands;
      for (let code = 0; code < labels.length; code++) {
        if (!sums[code]) continue;
        const high = low - (bands * sums[code]) / n;
        pen.fill(labelFill(pen.context, code), x, high, wide, low - high);
        low = high;
      }
      if (low > 0.5) pen.fill(UNKNOWN_COLOUR, x, 0, wide, low);
    });
    for (const level of [0, 0.5, 1])
      pen.name(shortShare(level), Math.max(10, bands * (1 - level)), "end");
    pen.name("marginals", bands / 4 + 4);
  }

  drawStrip(pen, name, codes, top, from, to, height) {
    this.eachColumn(from, to, (x, wide, first) => {
      if (codes[first] < labels.length)
        pen.fill(labelFill(pen.context, codes[first]), x, top, wide, height);
    });
    if (name) pen.name(name, top + height - 3);
    const step = this.width / (to - from);
    if (name && step > 0.5) this.writeRuns(pen, codes, top + height - 3, step);
  }

  /** Names of labels in runs that have space for them. */
  writeRuns(pen, codes, y, step) {
    const [first, stop] = [Math.floor(this.from), Math.min(this.end, Math.ceil(this.to))];
    for (let t = first, begin = first; t < stop; t++) {
      if (t + 1 < stop && codes[t + 1] === codes[begin]) continue;
      if (codes[begin] < labels.length) {
        const left = Math.max(0, (begin - this.from) * step);
        const right = Math.min(this.width, (t + 1 - this.from) * step);
        pen.fit(labelText(codes[begin]), TIMELINE.left + left, right - left, y, labelColour(codes[begin]));
      }
      begin = t + 1;
    }
  }

  drawErrors(pen, top, from, to, height) {
    this.eachColumn(from, to, (x, wide, first, stop) => {
      let t = first;
      while (t < stop && !this.all.isWrong(t)) t++;
      if (t < stop) pen.fill(pen.colour("--orange"), x, top, Math.max(1, wide), height);
    });
  }

  drawFeature(pen, { name, values }, top) {
    const { feature } = TIMELINE;
    let [low, high] = [Infinity, -Infinity];
    for (let t = this.begin; t < this.end; t++) {
      if (!Number.isFinite(values[t])) continue;
      low = Math.min(low, values[t]);
      high = Math.max(high, values[t]);
    }
    pen.name(shorten(name, 15), top + feature / 2 + 4);
    if (low > high) return;
    pen.name(figure(high), top + 10, "end");
    pen.name(figure(low), top + feature, "end");
    const y = (value) => top + feature - (feature * (value - low)) / (high - low || 1);
    pen.fill(pen.colour("--soft"), TIMELINE.left, top, this.width, feature);
    const points = [];
    this.eachColumn(this.from, this.to, (x, wide, first, stop) => {
      let [least, most] = [Infinity, -Infinity];
      for (let t = first; t < stop; t++) {
        if (!Number.isFinite(values[t])) continue;
        least = Math.min(least, values[t]);
        most = Math.max(most, values[t]);
      }
      points.push(least > most ? null : [x + wide / 2, y(least), y(most)]);
    });
    pen.line(points, pen.colour("--ink"));
  }

  drawAxis(pen, top) {
    const scale = this.width / (this.to - this.from);
    const [low, high] = [this.from - this.begin, this.to - this.begin - 1];
    for (const value of ticks(low, high, this.width / 90).filter(Number.isInteger)) {
      const x = TIMELINE.left + (value + 0.5 - low) * scale;
      pen.fill(pen.colour("--faint"), x, top, 1, 4);
      pen.text(count(value), x, top + 16, "center");
    }
    pen.name("position", top + 16);
  }

  /** The whole sequence below, with a frame around what is shown above. */
  drawOverview(pen) {
    const { overview, errors, left } = TIMELINE;
    this.drawStrip(pen, "", this.all.predicted, 0, this.begin, this.end, overview - errors - 2);
    if (this.all.truth) this.drawErrors(pen, overview - errors, this.begin, this.end, errors);
    const scale = this.width / (this.end - this.begin);
    pen.frame(left + (this.from - this.begin) * scale, 0, (this.to - this.from) * scale, overview);
    pen.name("overview", overview / 2 + 4);
  }

  /** Colours of the labels that occur in what is shown. */
  drawKey() {
    const found = new Set();
    const stride = Math.max(1, Math.floor((this.to - this.from) / 4000));
    for (let t = Math.floor(this.from); t < this.to && t < this.end; t += stride) {
      found.add(this.all.tops[0].codes[t]);
      if (this.all.truth && this.all.truth[t] < labels.length) found.add(this.all.truth[t]);
    }
    const codes = [...found].sort((a, b) => a - b);
    this.key.replaceChildren(...codes.map((code) => labelTag(code)));
  }

  /** What is shown, as a table. */
  table() {
    const { all, rows } = this;
    const strips = this.strips();
    const table = [
      ["position", ...strips.map(([name]) => name), "most probable", "probability", ...rows.map(({ name }) => name)],
    ];
    for (let t = Math.ceil(this.from); t < Math.min(this.to, this.end); t++) {
      table.push([
        t - this.begin,
        ...strips.map(([, codes]) => (codes[t] < labels.length ? labels[codes[t]] : "")),
        labels[all.tops[0].codes[t]],
        (all.tops[0].probs[t] / 255).toFixed(3),
        ...rows.map(({ values }) => values[t]),
      ]);
    }
    return table;
  }
}
