// Elements, formatted numbers, and the tooltip. All text is inserted as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Creates an HTML element. */
function make(tag, attributes = {}, ...children) {
  return finish(document.createElement(tag), attributes, children);
}

/** Creates an SVG element. */
function draw(tag, attributes = {}, ...children) {
  return finish(document.createElementNS(SVG, tag), attributes, children);
}

/** Attributes that are functions are listeners; null and false leave an attribute out. */
function finish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A whole number, with commas. */
function count(number) {
  return number.toLocaleString("en");
}

/** "1 error", "2 errors". */
function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** A number with four significant digits and a proper minus sign. */
function figure(number) {
  if (number === null || Number.isNaN(number)) return "–";
  if (!Number.isFinite(number)) return number > 0 ? "∞" : "−∞";
  if (number === 0) return "0";
  if (Number.isInteger(number) && Math.abs(number) < 1e9) return count(number).replace("-", "−");
  const size = Math.abs(number);
  const text =
    size >= 1e6 || size < 1e-4 ? number.toExponential(2) : String(Number(number.toPrecision(4)));
  return text.replaceAll("-", "−");
}

/** A share in percent. */
function share(number) {
  if (number === null || number === undefined) return "–";
  return number === 0 || number === 1 ? `${100 * number} %` : `${(100 * number).toFixed(2)} %`;
}

/** A share in as few characters as possible, for an axis. */
function shortShare(number) {
  return `${Number((100 * number).toFixed(2))} %`;
}

/** Classes of what is coloured by a level from 0 to 1: on strong colours text is light or dark. */
function strength(level) {
  return level > 0.75 ? " strong strongest" : level > 0.5 ? " strong" : "";
}

/** A probability that is stored in 255 steps. */
function roughShare(step) {
  if (step === 0 || step === 255) return step ? "> 99 %" : "< 1 %";
  return `${Math.max(1, Math.min(99, Math.round(step / 2.55)))} %`;
}

/** Text, shortened to at most `most` characters. */
function shorten(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** A label by its number; the number after the last label is an unknown label. */
function labelText(code) {
  return code < labels.length ? labels[code] || "(empty)" : "?";
}

/** A drop-down list of [value, text] pairs, with its name before it. */
function chooser(name, options, onChange) {
  const select = make(
    "select",
    { change: () => onChange(select.value) },
    ...options.map(([value, text]) => make("option", { value }, text)),
  );
  return { select, field: make("label", { class: "field" }, make("span", {}, name), select) };
}

/** Shows the `data-tip` of what the pointer or the focus is on. */
function startTooltip() {
  const tip = document.getElementById("tip");
  const show = (event) => {
    const owner = event.target.closest?.("[data-tip]");
    tip.hidden = !owner;
    if (owner) placeTip(tip, owner.dataset.tip, owner.getBoundingClientRect());
  };
  for (const name of ["pointerover", "focusin"]) document.addEventListener(name, show);
  for (const name of ["pointerleave", "focusout", "scroll"]) {
    document.addEventListener(name, () => (tip.hidden = true), { capture: name === "scroll" });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") tip.hidden = true;
  });
}

/** Puts a tip below a rectangle of the window, or above where there is no room. */
function placeTip(tip, text, box) {
  tip.textContent = text;
  tip.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = tip;
  const left = Math.min(box.left + box.width / 2 - width / 2, innerWidth - width - 8);
  const below = box.bottom + 6;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${below + height > innerHeight ? box.top - height - 6 : below}px`;
}
