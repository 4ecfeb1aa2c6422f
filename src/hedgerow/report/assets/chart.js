// Charts of lines over steps, drawn anew when their width changes.

const CHART = { height: 260, left: 58, right: 26, top: 22, bottom: 44 };

/** Round numbers between two others, about as many as requested. */
function ticks(low, high, most) {
  if (!(high > low)) return [low];
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((unit) => unit * power).find((size) => size >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++) found.push(k * step);
  return found;
}

/** Round numbers for a logarithmic axis: powers of ten times 1, 2 and 5, or 1 and 3, or 1 alone. */
function logTicks(low, high) {
  const powers = Math.log10(high / low);
  const units = powers > 4 ? [1] : powers > 2 ? [1, 3] : [1, 2, 5];
  const found = [];
  for (let k = Math.floor(Math.log10(low)); k <= Math.log10(high); k++)
    found.push(...units.map((unit) => unit * 10 ** k));
  return found.filter((value) => value >= low && value <= high);
}

/** An entry of a legend: a sample of its line, and what it is. */
function legend(text, style) {
  return make("span", { class: "legend" }, make("i", { class: `sample ${style}` }), text);
}

/** A box that calls `paint(width)` whenever its width changes, and shows the result. */
function responsive(paint) {
  const box = make("div", { class: "chart" });
  let last = 0;
  new ResizeObserver(() => {
    const width = Math.floor(box.clientWidth);
    if (width > 0 && width !== last) box.replaceChildren(paint((last = width)));
  }).observe(box);
  return box;
}

/**
 * Axes with round numbers; `x` and `y` turn numbers into pixels.
 * @param {object} parts - `xTicks`, `yTicks`, names `xName` and `yName`, and `xFormat` and `yFormat`
 *   for their numbers
 */
function axes(width, height, x, y, parts) {
  const { xTicks, yTicks, xName, yName, xFormat = figure, yFormat = figure } = parts;
  const { left, right, bottom } = CHART;
  return draw(
    "g",
    { class: "axes" },
    ...yTicks.map((value) =>
      draw("line", { x1: left, x2: width - right, y1: y(value), y2: y(value) }),
    ),
    ...yTicks.map((value) =>
      draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, yFormat(value)),
    ),
    ...xTicks.map((value) =>
      draw(
        "text",
        { x: x(value), y: height - bottom + 17, "text-anchor": "middle" },
        xFormat(value),
      ),
    ),
    draw(
      "text",
      { class: "axis-name", x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" },
      xName,
    ),
    draw("text", { class: "axis-name", x: 2, y: 11 }, yName),
    draw("line", {
      class: "base",
      x1: left,
      x2: width - right,
      y1: height - bottom,
      y2: height - bottom,
    }),
  );
}

/**
 * @param {string} name - what is drawn
 * @param {{name: string, values: number[], style: string}[]} series
 * @param {object} options - `step`, what a value belongs to, such as "round"; `unit` of the values;
 *   `isShare`, whether they are shares; `mark`, a step to mark, or null; `isLog` for a logarithmic
 *   axis, where all values are above 0
 */
function lineChart(name, series, { step, unit, isShare, mark, isLog }) {
  const format = isShare ? share : figure;
  const length = Math.max(...series.map(({ values }) => values.length));
  const finite = series.flatMap(({ values }) => values.filter((value) => value !== null));
  const onLog = isLog && Math.min(...finite) > 0;
  const to = onLog ? Math.log : (value) => value;
  const [low, high] = [to(Math.min(...finite)), to(Math.max(...finite))];
  const spare = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
  const yTicks = onLog
    ? logTicks(Math.exp(low - spare), Math.exp(high + spare))
    : ticks(low - spare, high + spare, 5).filter((tick) => !isShare || (tick >= 0 && tick <= 1));
  const last = series.map((line) => `${line.name} ${format(line.values.at(-1))}`).join(", ");
  const paint = (width) => {
    const { height, left, right, top, bottom } = CHART;
    const x = (at) => left + ((width - left - right) * (at - 1)) / Math.max(1, length - 1);
    const y = (value) =>
      height -
      bottom -
      ((height - top - bottom) * (to(value) - low + spare)) / (high - low + 2 * spare);
    const xTicks = length === 1 ? [1] : ticks(1, length, width / 90).filter(Number.isInteger);
    const picture = draw(
      "svg",
      { width, height, tabindex: 0, role: "img", "aria-label": `${name}; at the end: ${last}` },
      axes(width, height, x, y, {
        xTicks,
        yTicks,
        xName: step,
        yName: onLog ? `${unit}, log scale` : unit,
        yFormat: isShare ? shortShare : figure,
      }),
      mark === null
        ? null
        : draw("line", { class: "mark", x1: x(mark), x2: x(mark), y1: top, y2: height - bottom }),
      ...series.map(({ values, style }) =>
        draw("path", { class: `curve ${style}`, d: pathOf(values, x, y) }),
      ),
    );
    followPointer(picture, x, y, length, series, step, format);
    return picture;
  };
  const key = series.map(({ name: text, style }) => legend(text, style));
  if (mark !== null) key.push(legend(`best ${step}: ${count(mark)}`, "dotted"));
  const caption = make("figcaption", {}, make("b", {}, name), ...key);
  return exportable(
    fileName(name.toLowerCase()),
    make("figure", {}, caption, responsive(paint)),
    () => [
      [step, ...series.map((line) => line.name)],
      ...Array.from({ length }, (_, i) => [i + 1, ...series.map(({ values }) => values[i])]),
    ],
  );
}

function pathOf(values, x, y) {
  let pen = "M";
  return values
    .map((value, i) => {
      if (value === null) return ((pen = "M"), "");
      const point = `${pen}${x(i + 1).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = "L";
      return point;
    })
    .join("");
}

/** A cursor with the values of a step, for the pointer and the arrow keys. */
function followPointer(picture, x, y, length, series, step, format) {
  const line = draw("line", {
    class: "cursor",
    y1: CHART.top,
    y2: CHART.height - CHART.bottom,
    visibility: "hidden",
  });
  picture.append(line);
  const tip = document.getElementById("tip");
  let at = length;
  const show = (next) => {
    at = Math.max(1, Math.min(length, next));
    for (const end of ["x1", "x2"]) line.setAttribute(end, x(at));
    line.setAttribute("visibility", "visible");
    const values = series.map(({ name, values }) => `${name} ${format(values[at - 1] ?? null)}`);
    const box = picture.getBoundingClientRect();
    placeTip(
      tip,
      [`${step} ${count(at)}`, ...values].join("\n"),
      new DOMRect(box.left + x(at), box.top, 0, CHART.height - CHART.bottom),
    );
  };
  const hide = () => {
    line.setAttribute("visibility", "hidden");
    tip.hidden = true;
  };
  picture.addEventListener("pointermove", (event) => {
    const width = x(2) - x(1) || 1;
    show(Math.round((event.clientX - picture.getBoundingClientRect().left - x(1)) / width) + 1);
  });
  picture.addEventListener("pointerleave", hide);
  picture.addEventListener("blur", hide);
  picture.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    if (!(event.key in moves)) return;
    event.preventDefault();
    show(at + moves[event.key]);
  });
}
