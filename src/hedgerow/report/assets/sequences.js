// The sequences of the browser: their labels and features, order and search.

class Sequences {
  /** Reads `data.browser` from the blob of positions. */
  constructor(buffer, place) {
    const read = (where) => arrayIn(buffer, where);
    this.size = place.lengths.length;
    this.begins = sumsOf(read(place.lengths));
    this.numbers = read(place.numbers);
    this.names = place.names ?? null;
    this.scores = read(place.scores);
    this.predicted = read(place.predicted);
    this.otherwise = read(place.otherwise);
    this.compared = place.compared ? read(place.compared) : null;
    this.tops = place.tops.map(([codes, probs]) => ({ codes: read(codes), probs: read(probs) }));
    this.truth = place.truth ? read(place.truth) : null;
    this.truthProbs = place.truth ? read(place.truth_probs) : null;
    this.errors = this.countErrors();
    this.features = null;
  }

  name(s) {
    return this.names ? this.names[s] : `#${this.numbers[s]}`;
  }

  length(s) {
    return this.begins[s + 1] - this.begins[s];
  }

  isWrong(t) {
    return (
      this.truth !== null && this.truth[t] < labels.length && this.truth[t] !== this.predicted[t]
    );
  }

  /** Whether the second model is wrong. */
  isWrongThere(t) {
    return this.truth[t] < labels.length && this.truth[t] !== this.compared[t];
  }

  countErrors() {
    const errors = new Uint32Array(this.size);
    for (let s = 0; s < this.size; s++) {
      for (let t = this.begins[s]; t < this.begins[s + 1]; t++) errors[s] += this.isWrong(t);
    }
    return errors;
  }

  /** The probability of the least certain label of a sequence, in 255 steps. */
  leastSure(s) {
    const { probs } = this.tops[0];
    let least = 255;
    for (let t = this.begins[s]; t < this.begins[s + 1]; t++) least = Math.min(least, probs[t]);
    return least;
  }

  /** Numbers of all sequences, in an order; the worst come first unless it is reversed. */
  sorted(order, turned) {
    const key = Float64Array.from({ length: this.size }, (_, s) => SORTS[order].key(this, s));
    const sign = turned ? -1 : 1;
    return Uint32Array.from({ length: this.size }, (_, s) => s).sort(
      (a, b) => sign * (key[a] - key[b]) || a - b,
    );
  }

  /** A test of sequences: do they match the search? */
  filter({ query, only, truth, predicted }) {
    const hasText = query ? this.searcher(query) : null;
    const wantsPair = truth !== null || predicted !== null;
    return (s) =>
      (only === "" || this.findFirst(s, ONLY[only].has) >= 0) &&
      (!wantsPair || this.findPair(s, truth, predicted) >= 0) &&
      (hasText === null || hasText(s));
  }

  /** First position of a sequence with these labels, null for any; -1 if there is none. */
  findPair(s, truth, predicted) {
    return this.findFirst(s, (all, t) => all.isPair(t, truth, predicted));
  }

  /** First position of a sequence that passes a test; -1 if there is none. */
  findFirst(s, has) {
    for (let t = this.begins[s]; t < this.begins[s + 1]; t++) if (has(this, t)) return t;
    return -1;
  }

  isPair(t, truth, predicted) {
    return (
      (truth === null || this.truth[t] === truth) &&
      (predicted === null || this.predicted[t] === predicted)
    );
  }

  /** `name=text` searches one column for a text; any other text is searched for everywhere. */
  searcher(query) {
    const [, stem, text] = /^([^=]+)=(.+)$/.exec(query) ?? [];
    const column = stem === undefined ? undefined : this.features?.find(stem.trim());
    if (column) {
      const has = this.features.matcher(column, text);
      return (s) => {
        const [begin, end] = [this.begins[s], this.begins[s + 1]];
        for (let t = begin; t < end; t++) if (has(t, begin, end)) return true;
        return false;
      };
    }
    const haystacks = this.haystacks();
    const needle = query.toLowerCase();
    return (s) => haystacks[s].includes(needle);
  }

  /** All text of each sequence, in lower case; computed once. */
  haystacks() {
    if (this.haystacksMade && this.haystacksHaveFeatures === (this.features !== null))
      return this.haystacksMade;
    const joint = labels.every((label) => label.length === 1) ? "" : " ";
    const small = [...labels.map((label) => label.toLowerCase()), ""];
    const told = [this.predicted, ...(this.truth ? [this.truth] : [])];
    this.haystacksHaveFeatures = this.features !== null;
    this.haystacksMade = Array.from({ length: this.size }, (_, s) => {
      const [begin, end] = [this.begins[s], this.begins[s + 1]];
      const lines = [
        this.name(s).toLowerCase(),
        ...told.map((codes) => joined(codes, begin, end, small, joint)),
      ];
      return [...lines, ...(this.features?.readable(begin, end) ?? [])].join("\n");
    });
    return this.haystacksMade;
  }
}

// Sequences with small keys come first.
const SORTS = {
  score: { name: "log-likelihood per position", key: (all, s) => all.scores[s] },
  errors: { name: "number of errors", key: (all, s) => -all.errors[s] },
  share: { name: "share of errors", key: (all, s) => -all.errors[s] / all.length(s) },
  sure: { name: "least certain label", key: (all, s) => all.leastSure(s) },
  length: { name: "length", key: (all, s) => -all.length(s) },
  number: { name: "order in the data", key: (all, s) => all.numbers[s] },
};

// Which sequences to show: those with a position that passes a test. `needs` says what the page must
// have for it: the truth, or a second model.
const ONLY = {
  errors: { name: "with errors", needs: ["truth"], has: (all, t) => all.isWrong(t) },
  decoders: {
    name: "where the decoders differ",
    needs: [],
    has: (all, t) => all.predicted[t] !== all.otherwise[t],
  },
  models: {
    name: "where the models differ",
    needs: ["compared"],
    has: (all, t) => all.predicted[t] !== all.compared[t],
  },
  onlyFirst: {
    name: "where only the first model is right",
    needs: ["truth", "compared"],
    has: (all, t) => all.isWrongThere(t) && !all.isWrong(t),
  },
  onlySecond: {
    name: "where only the second model is right",
    needs: ["truth", "compared"],
    has: (all, t) => all.isWrong(t) && !all.isWrongThere(t),
  },
  neither: {
    name: "where both models are wrong",
    needs: ["truth", "compared"],
    has: (all, t) => all.isWrong(t) && all.isWrongThere(t),
  },
};

/** Where parts begin, from their lengths: one more than there are parts. */
function sumsOf(lengths) {
  const sums = new Uint32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) sums[i + 1] = sums[i] + lengths[i];
  return sums;
}

function joined(codes, begin, end, texts, joint) {
  let line = "";
  for (let t = begin; t < end; t++) line += texts[codes[t]] + joint;
  return line;
}
