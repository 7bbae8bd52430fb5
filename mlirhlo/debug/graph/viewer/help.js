// The keys, in a dialog.

import { byId, element } from "./dom.js";

const KEYS = [
  ["/", "search"], ["arrows", "go to an operand, a user, the instruction beside"], ["Enter", "unfold or fold"],
  ["n, then + and −", "neighbourhood of N hops"], ["p, p", "all paths between two instructions"], ["Esc", "back to the whole"],
  ["u, o", "unfold one level, fold everything"], ["f", "fit to the window"], ["+ −", "zoom; also the wheel and two fingers; dragging moves"],
  ["[ ]", "stage before, after"], ["g", "show what a pass has removed"], ["c", "constants and tuple elements as boxes"],
  ["1 … 6", "colour by category, sharding, operations, bytes accessed, size, buffer"], ["t", "text of the computation"],
];

export function showKeys() {
  const table = element("dl");
  KEYS.forEach(([key, text]) => table.append(element("dt", {}, key), element("dd", {}, text)));
  const close = element("button", { onclick: () => byId("keys").close() }, "Close");
  byId("keys").replaceChildren(element("h2", {}, "Keys"), table, close);
  byId("keys").showModal();
}
