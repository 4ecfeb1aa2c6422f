// All about one position: its labels, their marginals, why it has its label, its features.

/** Explanations by position, unpacked when the first one is needed. */
class Explanations {
  async at(t) {
    if (!this.places) {
      const buffer = await openBlob("explanations");
      this.found = valueIn(buffer, data.browser.explanations.found);
      this.places = arrayIn(buffer, data.browser.explanations.places);
    }
    const place = placeOf(this.places, t);
    return place < 0 ? null : this.found[place];
  }
}

/** Labels by both decoders and models, and the true one. */
function positionFacts(all, t, begin) {
  const [own, other] = data.model.decode === "viterbi" ? ["Viterbi", "marginals"] : ["marginals", "Viterbi"];
  const lines = [
    ["Position", count(t - begin)],
    [`Predicted, ${own}`, labelTag(all.predicted[t])],
    [`Predicted, ${other}`, labelTag(all.otherwise[t])],
  ];
  if (all.compared) lines.push([data.comparison.names[1], labelTag(all.compared[t])]);
  if (all.truth) {
    lines.push(["True", all.truth[t] < labels.length ? labelTag(all.truth[t]) : "?"]);
    if (all.truth[t] < labels.length)
      lines.push(["Its probability", roughShare(all.truthProbs[t])]);
  }
  return make(
    "dl",
    { class: "facts" },
    ...lines.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]),
  );
}

/** The most probable labels as bars. */
function marginalBars(all, t) {
  return all.tops.map(({ codes, probs }) => {
    const cell = sizeBar(probs[t] / 255, roughShare(probs[t]));
    cell.firstChild.style.setProperty("--bar", labelColour(codes[t]));
    return make("div", { class: "marginal" }, labelTag(codes[t]), cell);
  });
}

/** All features of a position. */
function featureChips(pairs) {
  const chips = pairs.map(([name, text]) =>
    make(
      "span",
      { class: "chip", "data-tip": text === "" ? name : `${name} = ${text}` },
      make("i", {}, shorten(name, 60)),
      text === "" ? null : make("b", {}, shorten(text, 60)),
    ),
  );
  return make("div", { class: "chips" }, ...(chips.length ? chips : ["none"]));
}

/** The parts of the log-odds of two labels, largest features first; see `TreeCRF.explain`. */
function explanationTable(found, at, length) {
  if (found === null)
    return make(
      "p",
      { class: "quiet" },
      "The page has no explanation for this position; in Python, model.explain(x, position) computes it.",
    );
  const [label, against, logOdds, bias, features, nMore, more, transitions] = found;
  const lines = features.map(([name, offset, value, size]) => [
    featureName(name, offset, value, at + offset >= 0 && at + offset < length),
    size,
  ]);
  if (nMore) lines.push([`${plural(nMore, "more feature")}`, more]);
  lines.push(["(bias)", bias]);
  for (const [offset, names, size] of transitions) lines.push([transitionName(names, offset), size]);
  const sum = lines.reduce((total, [, size]) => total + size, 0);
  lines.push(["uncertainty about the labels of neighbours", logOdds - sum]);
  const largest = Math.max(...lines.map(([, size]) => Math.abs(size)), 1e-12);
  const table = make(
    "div",
    { class: "explanation" },
    ...lines.map(([name, size]) => {
      const row = patternRow([name], size, largest);
      row.dataset.tip = `${name}: ${figure(size)}`;
      return row;
    }),
    make("div", { class: "total" }, make("span", {}, "= log-odds"), make("b", {}, figure(logOdds))),
  );
  return make(
    "div",
    {},
    make("p", { class: "pair" }, labelTag(label), " against ", labelTag(against)),
    exportable("explanation", table, () => [
      ["part", "contribution"],
      ...lines,
      ["log-odds", logOdds],
    ]),
  );
}

function featureName(name, offset, value, isInside) {
  const where = offset === 0 ? "" : `[${offset > 0 ? "+" : "−"}${Math.abs(offset)}]`;
  return `${name}${where} = ${value ?? (isInside ? "missing" : "outside")}`;
}

/** `a → [b]`: brackets mark the label of the position itself. */
function transitionName(names, offset) {
  const own = names.length - 1 - offset;
  return names.map((name, i) => (i === own ? `[${name}]` : name)).join(" → ");
}
