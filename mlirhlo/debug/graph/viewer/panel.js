// The panel at the side: one instruction, the text of its computation, what the last pass changed.

import { amount, bufferText, byId, bytes, element, shortened } from "./dom.js";

const ROW = 18;
const MANY = 40;

/** Everything known of one instruction. `go(instruction)` and the other actions come from the page. */
export function showInstruction(instruction, stage, actions) {
  const panel = byId("instruction");
  if (!instruction) {
    panel.replaceChildren(...overview(stage, actions));
    return;
  }
  const isGone = instruction.status === "removed";
  const parts = [
    element("h2", {}, shortened(instruction.name, 200)),
    element("p", { class: "kind" }, `${instruction.opcode}${instruction.note ? ` · ${shortened(instruction.note, 80)}` : ""}`),
  ];
  if (instruction.status !== "same") {
    parts.push(element("p", { class: `badge ${instruction.status}` }, `${instruction.status} by this pass`));
  }
  if (!isGone) {
    parts.push(
      element("p", { class: "actions" },
        button("Neighbourhood", "n", () => actions.near(instruction)),
        button(actions.start() && actions.start() !== instruction ? `Paths from ${shortened(actions.start().name, 18)}` : "Start of paths", "p", () => actions.path(instruction)),
        button("Text", "t", () => actions.text(instruction))),
    );
  }
  const { type, order } = splitShape(instruction.shape);
  const rows = [["shape", type], ["layout", order], ["size", instruction.bytes ? bytes(instruction.bytes) : ""]];
  rows.push(["operations", instruction.flops || instruction.unknown ? operations(instruction.flops, instruction.unknown) : ""]);
  rows.push(["accesses", instruction.accessed ? bytes(instruction.accessed) : ""]);
  if (instruction.flops && instruction.accessed && !instruction.unknown) {
    rows.push(["intensity", `${(instruction.flops / instruction.accessed).toFixed(2)} operations a byte`]);
  }
  rows.push(["buffer", instruction.slot === null ? "" : bufferText(stage.slots[instruction.slot])]);
  rows.push(["sharding", instruction.sharding], ["op_name", instruction.opName], ["source", instruction.source]);
  rows.push(["computation", instruction.computation?.name ?? "gone"]);
  const table = element("dl");
  for (const [key, value] of rows) {
    if (value) {
      table.append(element("dt", {}, key), element("dd", {}, shortened(value, 2000)));
    }
  }
  parts.push(table);
  parts.push(...linked("Calls", instruction.called.map((c) => c.root ?? c.nodes[0]).filter(Boolean), actions, (i) => i.computation.name));
  parts.push(...linked("Operands", instruction.inputs, actions));
  parts.push(...linked("Users", instruction.users, actions));
  parts.push(element("h3", {}, "Text"), element("pre", {}, shortened(instruction.text, 20000)));
  if (instruction.earlier && ["changed", "moved", "renamed"].includes(instruction.status)) {
    parts.push(element("h3", {}, "Before"), element("pre", { class: "earlier" }, shortened(instruction.earlier.text, 20000)));
  }
  panel.replaceChildren(...parts);
}

function button(text, key, action) {
  return element("button", { onclick: action, title: `( ${key} )` }, text);
}

function splitShape(text) {
  const match = /^([a-z0-9]+\[[^\]]*\])(\{.*\})$/.exec(text);
  return match ? { type: match[1], order: match[2] } : { type: text, order: "" };
}

function linked(title, instructions, actions, nameOf = (instruction) => instruction.name) {
  if (!instructions.length) {
    return [];
  }
  const list = element("ul");
  instructions.slice(0, MANY).forEach((instruction) => {
    list.append(element("li", {}, element("button", { class: "link", onclick: () => actions.go(instruction) }, shortened(nameOf(instruction), 60)),
      " ", element("small", {}, shortened(instruction.shape, 40))));
  });
  if (instructions.length > MANY) {
    list.append(element("li", {}, `and ${instructions.length - MANY} more`));
  }
  return [element("h3", {}, `${title} (${instructions.length})`), list];
}

/** Operations, and of how many custom calls they are not known. */
function operations(flops, unknown) {
  const calls = `unknown of ${unknown} custom ${unknown === 1 ? "call" : "calls"}`;
  return unknown ? (flops ? `${amount(flops)}, ${calls}` : calls) : amount(flops);
}

function overview(stage, actions) {
  const counts = new Map();
  let [flops, accessed, unknown] = [0, 0, 0];
  for (const instruction of stage.instructions.values()) {
    counts.set(instruction.opcode, (counts.get(instruction.opcode) ?? 0) + 1);
  }
  for (const instruction of stage.entry?.nodes ?? []) {
    flops += instruction.flops;
    unknown += instruction.unknown;
    accessed += instruction.accessed;
  }
  const table = element("dl");
  const row = (key, value) => table.append(element("dt", {}, key), element("dd", {}, value));
  row("computations", amount(stage.computations.size));
  row("instructions", amount(stage.instructions.size));
  row("operations", operations(flops, unknown));
  row("accesses", bytes(accessed));
  const list = element("ul", { class: "counts" });
  [...counts].sort(([, a], [, b]) => b - a).slice(0, 24).forEach(([opcode, count]) => {
    list.append(element("li", {}, element("button", { class: "link", onclick: () => actions.search(`op:${opcode}`) }, opcode), ` ${count}`));
  });
  const parts = [element("h2", {}, "Module"), table];
  if (/^(\.\/|file:)/.test(stage.file)) {
    parts.push(element("p", {}, element("a", { href: stage.file }, "Text of this stage")));
  }
  parts.push(element("h3", {}, "Opcodes"), list);
  parts.push(element("p", { class: "hint" }, "Click a box for its facts, its + to look inside, or press ? for the keys."));
  return parts;
}

/** The text of a computation, of which only the lines in view are in the page. */
export function showText(computation, selected, actions) {
  const panel = byId("text");
  if (!computation) {
    panel.replaceChildren(element("p", { class: "hint" }, "Nothing is selected."));
    return;
  }
  const lines = computation.nodes;
  const head = element("p", { class: "where" }, `${computation.isEntry ? "ENTRY " : ""}%${shortened(computation.name, 80)} · ${amount(lines.length)} lines`);
  const sheet = element("div", { class: "sheet" });
  sheet.style.height = `${lines.length * ROW}px`;
  const scroller = element("div", { class: "scroller", tabindex: "0", "aria-label": "Text of the computation" }, sheet);
  const fill = () => {
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - 10);
    const last = Math.min(lines.length, first + Math.ceil(scroller.clientHeight / ROW) + 20);
    sheet.replaceChildren(...lines.slice(first, last).map((instruction, number) => {
      const mark = instruction === computation.root ? "ROOT " : "";
      const names = ["line", instruction.status, instruction === selected ? "selected" : ""].join(" ");
      const line = element("div", { class: names, onclick: () => actions.go(instruction) }, mark + shortened(instruction.text, 1000));
      line.style.top = `${(first + number) * ROW}px`;
      return line;
    }));
  };
  scroller.addEventListener("scroll", fill);
  panel.replaceChildren(head, scroller);
  const at = lines.indexOf(selected);
  scroller.scrollTop = Math.max(0, at * ROW - scroller.clientHeight / 2);
  fill();
}

/** What happened since the stage before. */
export function showChanges(stage, actions) {
  const panel = byId("changes");
  if (!stage.changes) {
    panel.replaceChildren(element("p", { class: "hint" }, "This is the first stage."));
    return;
  }
  const parts = [];
  for (const [status, found] of Object.entries(stage.changes)) {
    parts.push(...linked(status, found, actions).map((part) => {
      part.classList.add(`changes-${status}`);
      return part;
    }));
  }
  panel.replaceChildren(...(parts.length ? parts : [element("p", { class: "hint" }, "This pass changed nothing that the text shows.")]));
}
