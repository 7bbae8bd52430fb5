// Search: words that all have to occur in name, opcode, source line, op_name, shape or text.

import { byId, element, shortened } from "./dom.js";

const MOST = 60;
const FIELDS = { name: "name", op: "opcode", opcode: "opcode", source: "source", src: "source", scope: "opName", shape: "shape", sharding: "sharding" };

/** Instructions that a query finds, best first, and how many there are. `op:dot` looks at one field. */
export function find(query, stage) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    const [field, ...rest] = word.split(":");
    return rest.length && FIELDS[field] ? { field: FIELDS[field], text: rest.join(":") } : { text: word.replace(/^%/, "") };
  });
  if (!words.length) {
    return { hits: [], count: 0 };
  }
  const ranked = [];
  for (const instruction of stage.instructions.values()) {
    let rank = 0;
    for (const { field, text } of words) {
      const found = rankOf(instruction, field, text);
      if (found < 0) {
        rank = -1;
        break;
      }
      rank += found;
    }
    if (rank >= 0) {
      ranked.push([rank, instruction]);
    }
  }
  ranked.sort(([a], [b]) => a - b);
  return { hits: ranked.slice(0, MOST).map(([, instruction]) => instruction), count: ranked.length };
}

function rankOf(instruction, field, text) {
  if (field) {
    return instruction[field].toLowerCase().includes(text) ? 0 : -1;
  }
  const name = instruction.name.toLowerCase();
  if (name === text) {
    return 0;
  }
  if (instruction.opcode === text) {
    return 1;
  }
  if (name.startsWith(text)) {
    return 2;
  }
  const places = [name, instruction.opcode, instruction.source, instruction.opName, instruction.text];
  const place = places.findIndex((where) => where.toLowerCase().includes(text));
  return place < 0 ? -1 : 3 + place;
}

/** Wires the search box up; `go` is called with the instruction chosen. */
export function setUpSearch(currentStage, go) {
  const [box, list] = [byId("query"), byId("hits")];
  let [hits, chosen] = [[], 0];
  const close = () => {
    list.hidden = true;
    box.setAttribute("aria-expanded", "false");
  };
  const mark = () => {
    [...list.children].forEach((line, number) => line.setAttribute("aria-selected", String(number === chosen)));
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };
  const show = () => {
    const found = find(box.value, currentStage());
    [hits, chosen] = [found.hits, 0];
    const lines = hits.map((instruction, number) =>
      element("div", { role: "option", onmousedown: (event) => { event.preventDefault(); choose(number); } },
        element("b", {}, shortened(instruction.name, 60)), " ",
        element("span", {}, shortened(`${instruction.opcode} ${instruction.shape}`, 60)),
        element("small", {}, shortened([instruction.computation.name, instruction.source].filter(Boolean).join(" · "), 80))),
    );
    const rest = found.count - hits.length;
    if (!hits.length || rest) {
      lines.push(element("div", { class: "rest" }, hits.length ? `and ${rest} more` : "nothing found"));
    }
    list.replaceChildren(...lines);
    list.hidden = !box.value.trim();
    box.setAttribute("aria-expanded", String(!list.hidden));
    mark();
  };
  const choose = (number) => {
    if (hits[number]) {
      close();
      byId("canvas").focus(); // so that the next key is a command
      go(hits[number]);
    }
  };
  box.addEventListener("input", show);
  box.addEventListener("focus", () => box.value.trim() && show());
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      chosen = Math.max(0, Math.min(hits.length - 1, chosen + (event.key === "ArrowDown" ? 1 : -1)));
      mark();
    } else if (event.key === "Enter") {
      choose(chosen);
    } else if (event.key === "Escape") {
      close();
      byId("canvas").focus();
    }
  });
}
