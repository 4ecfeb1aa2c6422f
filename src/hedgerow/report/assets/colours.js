// Colours of labels: those of hedgerow's plots, with hatches when there are more labels than colours.

const UNKNOWN_COLOUR = "#c9cdd1";
const N_HATCHES = 4;
const patterns = new Map();

/** Colour of a label; labels that the model does not know are grey. */
function labelColour(code) {
  return code < data.model.labels.length
    ? data.palette[code % data.palette.length]
    : UNKNOWN_COLOUR;
}

/** Number of the hatch of a label: 0 is none. */
function labelHatch(code) {
  if (code >= data.model.labels.length) return 0;
  return Math.floor(code / data.palette.length) % N_HATCHES;
}

/** Black or white, whichever is easier to read on a colour. */
function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map(
    (at) => (parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2,
  );
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.3 ? "#20262c" : "#ffffff";
}

/** Gives an element the colour and hatch of a label. */
function paintLabel(element, code) {
  const colour = labelColour(code);
  element.style.setProperty("--label", colour);
  element.style.setProperty("--label-ink", inkOn(colour));
  element.classList.add("labelled", `hatch${labelHatch(code)}`);
  return element;
}

/** A small square in the colour of a label. */
function swatch(code) {
  return paintLabel(make("i", { class: "swatch", "aria-hidden": "true" }), code);
}

/** The name of a label after its colour. */
function labelTag(code, style = "tag") {
  return make("span", { class: style, "data-tip": labelText(code) }, swatch(code), labelText(code));
}

/** What a canvas fills with to show a label. */
function labelFill(context, code) {
  const hatch = labelHatch(code);
  const colour = labelColour(code);
  if (!hatch) return colour;
  const key = `${colour} ${hatch}`;
  if (!patterns.has(key)) patterns.set(key, context.createPattern(hatchTile(colour, hatch), "repeat"));
  return patterns.get(key);
}

function hatchTile(colour, hatch) {
  const tile = make("canvas", { width: 6, height: 6 });
  const context = tile.getContext("2d");
  context.fillStyle = colour;
  context.fillRect(0, 0, 6, 6);
  context.strokeStyle = context.fillStyle = inkOn(colour);
  context.globalAlpha = 0.45;
  if (hatch === 2) context.fillRect(2, 2, 2, 2);
  else {
    context.beginPath();
    context.moveTo(-1, 7);
    context.lineTo(7, -1);
    if (hatch === 3) {
      context.moveTo(-1, -1);
      context.lineTo(7, 7);
    }
    context.stroke();
  }
  return tile;
}
