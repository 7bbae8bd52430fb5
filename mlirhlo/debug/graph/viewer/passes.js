// The list of stages: what each pass was, and how much it changed.

import { byId, element, shortened } from "./dom.js";
import { countsOf } from "./data.js";

const SIGNS = { added: "+", removed: "−", changed: "~", moved: ">", renamed: "=" };

/** Fills the list; `show(place)` goes to a stage. */
export function listStages(data, show) {
  const rows = data.stages.map(({ label }, place) => {
    const [, name, pipeline] = /^(?:after )?(.*?)(?: \((.*)\))?$/s.exec(label);
    const counts = Object.entries(countsOf(data, place)).filter(([, count]) => count);
    const parts = counts.map(([kind, count]) => element("span", { class: `count-${kind}`, title: kind }, `${SIGNS[kind]}${count}`));
    return element("button", { class: place && !counts.length ? "idle" : "", title: shortened(label, 300), onclick: () => show(place) },
      element("span", { class: "number" }, `${place + 1}`),
      element("span", { class: "pass" }, shortened(name || label, 60), pipeline ? element("small", {}, shortened(pipeline, 60)) : "",
        element("span", { class: "counts" }, ...parts)));
  });
  byId("passes").replaceChildren(...rows);
}

/** Marks the stage that is shown, and brings it into view. */
export function markStage(place) {
  const list = byId("passes");
  [...list.children].forEach((row, number) => row.setAttribute("aria-current", String(number === place)));
  const row = list.children[place];
  if (row) {
    list.scrollTop = Math.max(0, row.offsetTop - list.offsetTop - (list.clientHeight - row.offsetHeight) / 2);
  }
}
