// The data of the page: small ones as JSON, large ones as blobs that are unpacked when needed.

const data = JSON.parse(document.getElementById("data").textContent);
const labels = data.labels ?? data.model.labels;

const ARRAYS = {
  u1: Uint8Array,
  u2: Uint16Array,
  u4: Uint32Array,
  i2: Int16Array,
  i4: Int32Array,
  f4: Float32Array,
};
const opened = new Map();

/** Bytes of a blob, inflated; done once. */
function openBlob(name) {
  if (!opened.has(name)) opened.set(name, inflate(document.getElementById(`blob-${name}`)));
  return opened.get(name);
}

async function inflate(element) {
  const bytes = fromBase64(element.textContent);
  element.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/** An array of a blob that is open. */
function arrayIn(buffer, place) {
  return new ARRAYS[place.dtype](buffer, place.start, place.length);
}

/** A JSON value of a blob that is open. */
function valueIn(buffer, place) {
  return JSON.parse(new TextDecoder().decode(arrayIn(buffer, place)));
}
