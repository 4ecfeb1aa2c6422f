// Features of positions: columns of texts and of numbers, and attributes in no column.

/** The features of each position. */
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

  /** Lines of all texts of a sequence, in lower case, each once. */
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

/** Index of a number in an ascending array; -1 if it is not there. */
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
