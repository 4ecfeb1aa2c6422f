// Charts of lines over steps, drawn anew when their width changes.

const CHART = { height: 240, left: 52, right: 14, top: 10, bottom: 38 };

/** Round numbers between two others, about so many. */
function ticks(low, high, most) {
  if (!(high > low)) return [low];
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((unit) => unit * power).find((size) => size >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++) found.push(k * step);
  return found;
}

/** A box that calls `paint(width)` whenever it gets another width, and holds what that returns. */
function responsive(paint) {
  const box = make("div", { class: "chart" });
  let last = 0;
  new ResizeObserver(() => {
    const width = Math.floor(box.clientWidth);
    if (width > 0 && width !== last) box.replaceChildren(paint((last = width)));
  }).observe(box);
  return box;
}

/** Axes with round numbers; `x` and `y` turn numbers into pixels. */
function axes(width, height, x, y, xTicks, yTicks, xName, format) {
  const { left, right, bottom } = CHART;
  return draw(
    "g",
    { class: "axes" },
    ...yTicks.map((value) =>
      draw("line", { x1: left, x2: width - right, y1: y(value), y2: y(value) }),
    ),
    ...yTicks.map((value) =>
      draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, format(value)),
    ),
    ...xTicks.map((value) =>
      draw(
        "text",
        { x: x(value), y: height - bottom + 16, "text-anchor": "middle" },
        figure(value),
      ),
    ),
    draw(
      "text",
      { class: "axis-name", x: (left + width - right) / 2, y: height - 2, "text-anchor": "middle" },
      xName,
    ),
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
 * @param {string} step - what a value belongs to: "round"
 * @param {boolean} isShare - whether the values are shares
 * @param {number|null} mark - a step to mark
 */
function lineChart(name, series, step, isShare, mark) {
  const format = isShare ? share : figure;
  const length = Math.max(...series.map(({ values }) => values.length));
  const finite = series.flatMap(({ values }) => values.filter((value) => value !== null));
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const spare = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
  const last = series.map((line) => `${line.name} ${format(line.values.at(-1))}`).join(", ");
  const paint = (width) => {
    const { height, left, right, top, bottom } = CHART;
    const x = (at) => left + ((width - left - right) * (at - 1)) / Math.max(1, length - 1);
    const y = (value) =>
      height -
      bottom -
      ((height - top - bottom) * (value - low + spare)) / (high - low + 2 * spare);
    const xTicks = length === 1 ? [1] : ticks(1, length, width / 90).filter(Number.isInteger);
    const picture = draw(
      "svg",
      { width, height, tabindex: 0, role: "img", "aria-label": `${name}; at the end: ${last}` },
      axes(
        width,
        height,
        x,
        y,
        xTicks,
        ticks(low - spare, high + spare, 5),
        step,
        isShare ? shortShare : figure,
      ),
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
  const key =
    series.length === 1
      ? []
      : series.map(({ name: text, style }) => make("span", { class: `legend ${style}` }, text));
  return make("figure", {}, make("figcaption", {}, make("b", {}, name), ...key), responsive(paint));
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
