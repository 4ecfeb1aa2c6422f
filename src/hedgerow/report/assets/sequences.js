// The sequences of the browser: their labels, what stands at their positions, order and search.

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

  countErrors() {
    const errors = new Uint32Array(this.size);
    for (let s = 0; s < this.size; s++) {
      for (let t = this.begins[s]; t < this.begins[s + 1]; t++) errors[s] += this.isWrong(t);
    }
    return errors;
  }

  /** The probability of the least sure label of a sequence, in 255 steps. */
  leastSure(s) {
    const { probs } = this.tops[0];
    let least = 255;
    for (let t = this.begins[s]; t < this.begins[s + 1]; t++) least = Math.min(least, probs[t]);
    return least;
  }

  /** Numbers of all sequences, in an order; the worst come first unless it is turned round. */
  sorted(order, turned) {
    const key = Float64Array.from({ length: this.size }, (_, s) => SORTS[order].key(this, s));
    const sign = turned ? -1 : 1;
    return Uint32Array.from({ length: this.size }, (_, s) => s).sort(
      (a, b) => sign * (key[a] - key[b]) || a - b,
    );
  }

  /** A test of sequences: do they have what was asked for? */
  filter({ query, onlyErrors, truth, predicted }) {
    const hasText = query ? this.searcher(query) : null;
    const wantsPair = truth !== null || predicted !== null;
    return (s) =>
      (!onlyErrors || this.errors[s] > 0) &&
      (!wantsPair || this.findPair(s, truth, predicted) >= 0) &&
      (hasText === null || hasText(s));
  }

  /** First position of a sequence with these labels, null for any; -1 if there is none. */
  findPair(s, truth, predicted) {
    for (let t = this.begins[s]; t < this.begins[s + 1]; t++) {
      if (this.isPair(t, truth, predicted)) return t;
    }
    return -1;
  }

  isPair(t, truth, predicted) {
    return (
      (truth === null || this.truth[t] === truth) &&
      (predicted === null || this.predicted[t] === predicted)
    );
  }

  /** `name=text` looks for a text in one column; else a text is looked for everywhere. */
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

  /** All that can be read in each sequence, in small letters; made once. */
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

// Small keys come first.
const SORTS = {
  score: { name: "log-likelihood per position", key: (all, s) => all.scores[s] },
  errors: { name: "number of errors", key: (all, s) => -all.errors[s] },
  share: { name: "share of errors", key: (all, s) => -all.errors[s] / all.length(s) },
  sure: { name: "least sure label", key: (all, s) => all.leastSure(s) },
  length: { name: "length", key: (all, s) => -all.length(s) },
  number: { name: "order in the data", key: (all, s) => all.numbers[s] },
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

/** What stands at each position. */
class Features {
  /** Reads `data.browser.features` from the blob of features. */
  constructor(buffer, place) {
    this.texts = valueIn(buffer, place.texts);
    this.columns = place.columns.map((column) => ({
      ...column,
      codes: column.codes && arrayIn(buffer, column.codes),
      values: column.values && arrayIn(buffer, column.values),
      // Positions of a derived column that have a text of their own.
      own: column.steps && sumsOf(arrayIn(buffer, column.steps)).subarray(1),
    }));
    this.headline = place.headline;
    this.loose = place.loose && {
      begins: sumsOf(arrayIn(buffer, place.loose.counts)),
      codes: arrayIn(buffer, place.loose.codes),
      names: valueIn(buffer, place.loose.names),
      values: place.loose.values ? arrayIn(buffer, place.loose.values) : null,
    };
  }

  find(name) {
    return this.columns.find((column) => column.name === name);
  }

  /** What a column has at position t of the sequence from `begin` to `end`; empty for nothing. */
  show(column, t, begin, end) {
    if (column.values) return Number.isNaN(column.values[t]) ? "" : shortNumber(column.values[t]);
    if (!column.sources) return this.texts[column.codes[t]];
    const place = placeOf(column.own, t);
    if (place >= 0) return this.texts[column.codes[place]];
    const parts = column.sources.map(([source, shift]) => {
      const at = t + shift;
      return at < begin || at >= end ? 0 : this.columns[source].codes[at];
    });
    return parts.includes(0) ? "" : parts.map((code) => this.texts[code]).join(column.joint);
  }

  /** A test of positions: does a column have this text there? */
  matcher(column, text) {
    if (column.values) return (t) => shortNumber(column.values[t]) === text;
    const code = this.texts.indexOf(text);
    if (!column.sources) return (t) => column.codes[t] === code;
    column.ownCodes ??= new Map(Array.from(column.own, (t, i) => [t, column.codes[i]]));
    const parts = column.joint ? text.split(column.joint) : [text];
    const wanted =
      parts.length === column.sources.length
        ? column.sources.map(([source, shift], i) => [
            this.columns[source].codes,
            shift,
            this.texts.indexOf(parts[i]),
          ])
        : null;
    return (t, begin, end) => {
      const own = column.ownCodes.get(t);
      if (own !== undefined) return own === code;
      return (
        wanted !== null &&
        wanted.every(
          ([codes, shift, part]) =>
            t + shift >= begin && t + shift < end && codes[t + shift] === part,
        )
      );
    };
  }

  /** Everything at a position: [name, text] pairs. */
  list(t, begin, end) {
    const pairs = this.columns
      .map((column) => [column.name, this.show(column, t, begin, end)])
      .filter(([, text]) => text !== "");
    if (this.loose) {
      for (let i = this.loose.begins[t]; i < this.loose.begins[t + 1]; i++) {
        const value = this.loose.values ? this.loose.values[i] : 1;
        pairs.push([this.loose.names[this.loose.codes[i]], value === 1 ? "" : shortNumber(value)]);
      }
    }
    return pairs;
  }

  /** Lines of all texts of a sequence, in small letters, each once. */
  readable(begin, end) {
    this.small ??= this.texts.map((text) => text.toLowerCase());
    const lines = this.columns
      .filter((column) => column.codes && !column.sources)
      .map((column) => joined(column.codes, begin, end, this.small, " "));
    if (this.loose) {
      this.smallNames ??= this.loose.names.map((name) => name.toLowerCase());
      lines.push(
        joined(
          this.loose.codes,
          this.loose.begins[begin],
          this.loose.begins[end],
          this.smallNames,
          " ",
        ),
      );
    }
    return lines;
  }
}

/** Where a number stands in a rising array; -1 if it does not. */
function placeOf(rising, number) {
  let [low, high] = [0, rising.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (rising[middle] === number) return middle;
    if (rising[middle] < number) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

function shortNumber(number) {
  return Number.isInteger(number) ? String(number) : String(Number(number.toPrecision(5)));
}
