// Export: a figure as a PNG, its numbers as CSV. Nothing leaves the browser.

// Style properties that a picture needs.
const STYLE_PROPERTIES = [
  "color background-color background-image opacity fill stroke stroke-width stroke-dasharray",
  "border-top border-right border-bottom border-left border-radius border-collapse border-spacing",
  "font-family font-size font-weight font-style font-variant-numeric line-height text-align",
  "text-anchor text-decoration vertical-align white-space writing-mode transform visibility",
  "display flex flex-grow flex-wrap align-items justify-content gap grid-template-columns",
  "box-sizing width height min-width min-height padding margin position left top right bottom",
]
  .join(" ")
  .split(" ");
const PNG_SCALE = 2;

/**
 * A figure with two buttons below it.
 * @param {string} name - of the files
 * @param {Element} element - the figure
 * @param {function(): Array[]} rows - its numbers, the names of the columns first
 */
function exportable(name, element, rows) {
  const button = (text, tip, save) =>
    make("button", { type: "button", class: "export", "data-tip": tip, click: save }, text);
  return make(
    "div",
    { class: "exportable" },
    element,
    make(
      "div",
      { class: "exports" },
      button("PNG", "Save this figure as a picture", () => savePng(name, element)),
      button("CSV", "Save the numbers of this figure", () => saveCsv(name, rows())),
    ),
  );
}

function saveCsv(name, rows) {
  const quote = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = rows.map((row) => row.map(quote).join(","));
  download(`${name}.csv`, new Blob([`${lines.join("\n")}\n`], { type: "text/csv" }));
}

async function savePng(name, element) {
  // Figures that scroll are saved completely.
  const figure = element.matches(".scroll") ? element.firstElementChild : element;
  const box = figure.getBoundingClientRect();
  const width = Math.ceil(Math.max(box.width, figure.scrollWidth)) + 2;
  const height = Math.ceil(Math.max(box.height, figure.scrollHeight)) + 2;
  const copy = copyWithStyles(figure);
  copy.style.margin = "0";
  const picture = draw(
    "svg",
    { width, height },
    draw("foreignObject", { width: "100%", height: "100%" }, copy),
  );
  const image = new Image();
  const text = new XMLSerializer().serializeToString(picture);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = make("canvas", { width: width * PNG_SCALE, height: height * PNG_SCALE });
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(document.querySelector("section")).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => download(`${name}.png`, blob));
}

/** A copy that needs no style sheet; a canvas becomes the picture on it. */
function copyWithStyles(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return node.cloneNode();
  const copy =
    node.tagName === "CANVAS" ? make("img", { src: node.toDataURL() }) : node.cloneNode(false);
  copy.removeAttribute("class");
  copy.removeAttribute("style");
  const style = getComputedStyle(node);
  for (const name of STYLE_PROPERTIES) copy.style.setProperty(name, style.getPropertyValue(name));
  copy.append(...[...node.childNodes].map(copyWithStyles));
  return copy;
}

/** Lets the user download a file. */
function download(name, blob) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: `${fileName(data.title)}-${name}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

/** A title as part of the name of a file. */
function fileName(title) {
  return title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "") || "report";
}
