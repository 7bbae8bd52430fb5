// The pointer: dragging moves, the wheel zooms, clicks select and unfold.

import { byId } from "./dom.js";
import { moveView, state, zoom } from "./view.js";

/** Wires the canvas up; the page says what to do with what was clicked. */
export function setUpPointer({ select, toggle, reveal }) {
  const canvas = byId("canvas");
  let drag = null;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { left, top } = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * 0.0016), event.clientX - left, event.clientY - top);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag || !event.buttons) {
      return;
    }
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) {
      return;
    }
    canvas.setPointerCapture(event.pointerId);
    state.view.x += dx;
    state.view.y += dy;
    drag = { x: event.clientX, y: event.clientY, moved: true };
    canvas.classList.add("dragging");
    moveView();
  });
  canvas.addEventListener("click", (event) => {
    const wasMoved = drag?.moved;
    drag = null;
    canvas.classList.remove("dragging");
    canvas.focus();
    if (wasMoved) {
      return;
    }
    const box = state.shown.get(event.target.closest?.("[data-key]")?.dataset.key);
    if (!box) {
      select(null);
      return;
    }
    const { item } = box.place;
    if (event.target.closest(".handle") || !item.instruction) {
      toggle(item);
    } else if (item.kind === "stub") {
      reveal(item.instruction);
    } else {
      select(item.instruction);
    }
  });
  canvas.addEventListener("dblclick", (event) => {
    const box = state.shown.get(event.target.closest?.("[data-key]")?.dataset.key);
    if (box?.place.item.instruction && !event.target.closest(".handle")) {
      toggle(box.place.item);
    }
  });
}
