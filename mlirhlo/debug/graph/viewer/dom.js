// Elements. Text goes in as text only: nothing here, or elsewhere, ever parses markup.

const SVG = "http://www.w3.org/2000/svg";

/** The element of the page with that id. */
export const byId = (id) => document.getElementById(id);

/** A new HTML element with attributes and children; strings become text. */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** A new SVG element. */
export function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) {
      node.addEventListener(key.slice(2), value);
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(key, value === true ? "" : String(value));
    }
  }
  node.append(...children);
  return node;
}

/** `text` cut in the middle to at most `length` characters; what is no visible character shows as �. */
export function shortened(text, length) {
  text = text.slice(0, 4 * length).replace(/(?![\n\t])[\p{Cc}\p{Cf}]/gu, "\uFFFD") + text.slice(4 * length);
  if (text.length <= length) {
    return text;
  }
  const head = Math.ceil((length - 1) * 0.6);
  return `${text.slice(0, head)}…${text.slice(text.length - (length - 1 - head))}`;
}

/** 1234567 as `1.2 M`. */
export function amount(value, unit = "") {
  let power = 0;
  while (value >= 1000 && power < 5) {
    value /= 1000;
    power += 1;
  }
  const digits = power === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${" kMGTP"[power].trim()}${unit}`.trim();
}

/** Bytes, in powers of 1024. */
export function bytes(value) {
  let power = 0;
  while (value >= 1024 && power < 5) {
    value /= 1024;
    power += 1;
  }
  const unit = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][power];
  return `${power === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${unit}`;
}

/** A buffer of the last stage: what it is, where in its allocation, how large. */
export function bufferText([text, size, offset]) {
  return `${text}${offset ? `, offset ${offset}` : ""}, ${bytes(size)}`;
}
