// The browser of sequences: a list of them, the positions of one, the features of a position.

// Number of pieces of the strip that represents a long sequence.
const STRIP = 60;

class Browser {
  constructor(host) {
    this.host = host;
    this.state = {
      order: "score",
      turned: false,
      query: "",
      only: "",
      truth: null,
      predicted: null,
    };
    this.shown = new Uint32Array(0);
    this.sequence = -1;
    this.hasTruth = Boolean(data.browser.truth);
    this.sequenceList = new VirtualList(
      "Sequences",
      52,
      (i) => this.sequenceRow(this.shown[i]),
      (i) => this.openSequence(this.shown[i]),
    );
    this.positionList = new VirtualList(
      "Positions",
      30,
      (i) => this.positionRow(this.begin + i),
      (i) => this.openPosition(this.begin + i),
    );
    this.explanations = new Explanations();
    this.timelineHolder = make("div", {});
    this.positionHead = make("div", { class: "pane-head" });
    this.columnHead = make("div", { class: "position column-head", "aria-hidden": "true" });
    this.featurePane = make("div", {
      class: "pane-body",
      tabindex: 0,
      role: "region",
      "aria-label": "Features of the position",
      "aria-live": "polite",
    });
    this.status = make("p", { class: "status", role: "status" });
    host.replaceChildren(this.makeTools(), this.status, this.timelineHolder, this.makePanes());
  }

  /** Unpacks the data; features come after the first list is on the page. */
  async start() {
    this.all = new Sequences(await openBlob("positions"), data.browser);
    this.timeline = new Timeline(this.all, (t) => this.positionList.select(t - this.begin, true));
    this.timelineHolder.replaceChildren(this.timeline.element);
    this.update();
    await new Promise((done) => setTimeout(done));
    this.all.features = new Features(await openBlob("features"), data.browser.features);
    this.offerTexts();
    this.timeline.offerFeatures(this.all.features.columns);
    this.timeline.paint();
    this.nameColumns();
    if (this.state.query) this.update(); // it may search features
    this.sequenceList.paint();
    this.positionList.paint();
    if (this.position >= 0) this.openPosition(this.position);
    setTimeout(() => this.all.haystacks(), 300); // so that the first search is quick too
  }

  makeTools() {
    const sorts = Object.entries(SORTS).filter(
      ([key]) => this.hasTruth || (key !== "errors" && key !== "share"),
    );
    const names = Object.fromEntries(sorts.map(([key, { name }]) => [key, name]));
    if (!this.hasTruth) names.score = "mean log probability of the predicted labels";
    const order = chooser("Order", Object.entries(names), (value) => this.change({ order: value }));
    const turn = make(
      "button",
      {
        type: "button",
        class: "turn",
        "aria-pressed": "false",
        "aria-label": "Reverse the order",
        "data-tip": "Reverse the order",
        click: () => {
          turn.setAttribute("aria-pressed", String(!this.state.turned));
          this.change({ turned: !this.state.turned });
        },
      },
      "⇅",
    );
    this.search = make("input", {
      type: "search",
      placeholder: "text, label, or feature=text",
      "aria-label": "Search sequences",
      input: () => this.change({ query: this.search.value.trim() }),
    });
    const any = [["", "any"], ...labels.map((_, code) => [code, labelText(code)])];
    const number = (value) => (value === "" ? null : Number(value));
    this.truthChooser = chooser("True", any, (value) => this.change({ truth: number(value) }));
    this.predictedChooser = chooser("Predicted", any, (value) =>
      this.change({ predicted: number(value) }),
    );
    const has = { truth: this.hasTruth, compared: Boolean(data.browser.compared) };
    const kinds = Object.entries(ONLY).filter(([, { needs }]) => needs.every((part) => has[part]));
    this.onlyChooser = chooser(
      "Only",
      [["", "all"], ...kinds.map(([key, { name }]) => [key, name])],
      (value) => this.change({ only: value }),
    );
    this.textHolder = make("span", {});
    return make(
      "div",
      { class: "tools" },
      this.search,
      order.field,
      turn,
      this.hasTruth ? this.truthChooser.field : null,
      this.predictedChooser.field,
      this.onlyChooser.field,
      this.textHolder,
    );
  }

  makePanes() {
    const pane = (style, ...children) => make("div", { class: `pane ${style}` }, ...children);
    return make(
      "div",
      { class: "panes" },
      pane("first", this.sequenceList.element),
      pane("second", this.positionHead, this.columnHead, this.positionList.element),
      pane("third", this.featurePane),
    );
  }

  /** Lets the reader choose which column is shown as the text of a position. */
  offerTexts() {
    const { columns, headline } = this.all.features;
    this.textColumn = headline === null ? null : columns[headline];
    if (columns.length < 2) return;
    const options = [["", "none"], ...columns.map((column, i) => [i, shorten(column.name, 24)])];
    const { select, field } = chooser("Show", options, (value) => {
      this.textColumn = value === "" ? null : columns[Number(value)];
      this.nameColumns();
      this.sequenceList.paint();
      this.positionList.paint();
    });
    select.value = headline ?? "";
    this.textHolder.replaceChildren(field);
  }

  change(changes) {
    Object.assign(this.state, changes);
    this.update();
  }

  /** Shows only sequences with this true and predicted label: a cell of the confusion matrix. */
  showPair(truth, predicted) {
    this.truthChooser.select.value = truth;
    this.predictedChooser.select.value = predicted;
    this.change({ truth, predicted });
    this.reveal();
  }

  /** Shows only some kind of sequences, see `ONLY`. */
  showOnly(kind) {
    this.onlyChooser.select.value = kind;
    this.change({ only: kind });
    this.reveal();
  }

  reveal() {
    this.host.closest("section").scrollIntoView();
    this.sequenceList.element.focus({ preventScroll: true });
  }

  update() {
    if (!this.all) return; // shown when it is unpacked
    const { order, turned } = this.state;
    this.shown = this.all.sorted(order, turned).filter(this.all.filter(this.state));
    const total = data.browser.total;
    this.status.textContent =
      this.shown.length === total
        ? plural(total, "sequence")
        : `${count(this.shown.length)} of ${plural(total, "sequence")}`;
    this.sequenceList.setSize(this.shown.length);
    if (this.shown.length) this.sequenceList.select(0);
    else this.clear();
  }

  clear() {
    this.position = -1;
    this.positionHead.replaceChildren("No sequence matches.");
    this.positionList.setSize(0);
    this.timeline.open(0, 0);
    this.featurePane.replaceChildren();
  }

  sequenceRow(s) {
    const all = this.all;
    const facts = [
      all.name(s),
      plural(all.length(s), "position"),
      this.hasTruth ? plural(all.errors[s], "error") : null,
      figure(all.scores[s]),
    ];
    return make(
      "div",
      { class: "sequence" },
      this.preview(s),
      make("div", { class: "facts-line" }, facts.filter((fact) => fact !== null).join(" · ")),
    );
  }

  /** The beginning of a sequence as a line of text, or what is around its first error. */
  preview(s) {
    const all = this.all;
    const [begin, end] = [all.begins[s], all.begins[s + 1]];
    if (!this.textColumn && this.hasTruth && end - begin > 2 * STRIP)
      return this.errorStrip(begin, end);
    let first = begin;
    while (first < end && !all.isWrong(first)) first++;
    const start = first === end || first - begin < 12 ? begin : first - 4;
    const words = [];
    const column = this.textColumn;
    for (let t = start; t < Math.min(end, start + 40); t++) {
      const text = column
        ? all.features.show(column, t, begin, end) || "·"
        : labelText(all.predicted[t]);
      words.push(make("span", { class: all.isWrong(t) ? "wrong" : null }, text));
    }
    const line = make("div", {
      class: !column && labels.every((label) => label.length === 1) ? "preview close" : "preview",
    });
    line.append(start > begin ? "… " : "", ...words);
    return line;
  }

  /** Where in a long sequence its errors are. */
  errorStrip(begin, end) {
    const pieces = Array.from({ length: STRIP }, (_, i) => {
      const [from, to] = [i, i + 1].map(
        (place) => begin + Math.floor((place * (end - begin)) / STRIP),
      );
      let wrong = 0;
      for (let t = from; t < to; t++) wrong += this.all.isWrong(t);
      const piece = make("span", { class: "below" });
      piece.style.setProperty("--level", `${((100 * wrong) / (to - from)).toFixed(0)}%`);
      return piece;
    });
    return make("div", { class: "error-strip", "data-tip": "positions of the errors" }, ...pieces);
  }

  openSequence(s) {
    const all = this.all;
    this.sequence = s;
    this.begin = all.begins[s];
    this.end = all.begins[s + 1];
    const score = this.hasTruth ? "log-likelihood per position" : "mean log probability";
    const facts = [plural(all.length(s), "position"), `${score} ${figure(all.scores[s])}`];
    if (this.hasTruth) facts.splice(1, 0, plural(all.errors[s], "error"));
    this.positionHead.replaceChildren(make("b", {}, all.name(s)), ` ${facts.join(", ")}`);
    this.nameColumns();
    this.timeline.open(this.begin, this.end);
    this.positionList.setSize(all.length(s));
    this.positionList.select(this.firstToShow(s) - this.begin, true);
  }

  nameColumns() {
    const cell = (style, text) => make("span", { class: style }, text);
    this.columnHead.replaceChildren(
      cell("place", ""),
      ...(this.textColumn ? [cell("word", this.textColumn.name)] : []),
      ...(this.hasTruth ? [cell("label", "true")] : []),
      cell("label", "predicted"),
      ...(data.browser.compared ? [cell("label", "second model")] : []),
      cell("", "marginals"),
    );
    this.columnHead.lastChild.style.flex = "2.2 1 0";
  }

  /** The position that was searched for, the first error, or the first position. */
  firstToShow(s) {
    const { truth, predicted, only } = this.state;
    if (truth !== null || predicted !== null)
      return Math.max(this.begin, this.all.findPair(s, truth, predicted));
    const has = only ? ONLY[only].has : (all, t) => all.isWrong(t);
    return Math.max(this.begin, this.all.findFirst(s, has));
  }

  positionRow(t) {
    const all = this.all;
    const wrong = all.isWrong(t);
    const { truth, predicted } = this.state;
    const wanted = (truth !== null || predicted !== null) && all.isPair(t, truth, predicted);
    const row = make("div", {
      class: `position${wrong ? " wrong-row" : ""}${wanted ? " wanted" : ""}`,
    });
    row.append(make("span", { class: "place" }, count(t - this.begin)));
    if (this.textColumn)
      row.append(
        make(
          "span",
          { class: "word" },
          this.all.features.show(this.textColumn, t, this.begin, this.end),
        ),
      );
    if (this.hasTruth) row.append(this.labelCell(all.truth[t], false));
    row.append(this.labelCell(all.predicted[t], wrong));
    if (all.compared)
      row.append(this.labelCell(all.compared[t], this.hasTruth && all.isWrongThere(t)));
    row.append(this.probabilities(t));
    return row;
  }

  labelCell(code, wrong) {
    if (code >= labels.length) return make("span", { class: "label" }, "?");
    return make("span", { class: wrong ? "label wrong" : "label" }, swatch(code), labelText(code));
  }

  /** The most probable labels, each with its share of a bar. */
  probabilities(t) {
    const parts = this.all.tops
      .filter(({ probs }) => probs[t] > 1)
      .map(({ codes, probs }) => {
        const name = labelText(codes[t]);
        // A name that would be cut off is left to the tooltip.
        const part = make(
          "span",
          { class: "part", "data-tip": `${name}: ${roughShare(probs[t])}` },
          probs[t] > 30 + 12 * Math.min(name.length, 14) ? name : "",
        );
        part.style.flexGrow = probs[t];
        return paintLabel(part, codes[t]);
      });
    const rest = 255 - this.all.tops.reduce((sum, { probs }) => sum + probs[t], 0);
    if (rest > 1) {
      const part = make("span", { class: "part rest", "data-tip": `others: ${roughShare(rest)}` });
      part.style.flexGrow = rest;
      parts.push(part);
    }
    return make("span", { class: "probabilities" }, ...parts);
  }

  openPosition(t) {
    this.position = t;
    const all = this.all;
    const why = make("div", {});
    const features = all.features ? all.features.list(t, this.begin, this.end) : [];
    this.featurePane.replaceChildren(
      positionFacts(all, t, this.begin),
      make("h4", {}, "Marginals"),
      ...marginalBars(all, t),
      make("h4", {}, "Why this label"),
      why,
      make("h4", {}, "Features"),
      featureChips(features),
    );
    this.timeline.choose(t);
    const [at, length] = [t - this.begin, this.end - this.begin];
    this.explanations
      .at(t)
      .then((found) => why.replaceChildren(explanationTable(found, at, length)));
  }
}
