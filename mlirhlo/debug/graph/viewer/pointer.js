// The pointer: dragging moves, the wheel and two fingers zoom, clicks select and unfold.

import { byId } from "./dom.js";
import { moveView, state, zoom } from "./view.js";

/** Wires the canvas up; the page says what to do with what was clicked. */
export function setUpPointer({ select, toggle, reveal }) {
  const canvas = byId("canvas");
  let drag = null;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const { left, top } = canvas.getBoundingClientRect();
    // A pinch on a touchpad comes as a wheel with Ctrl, in small steps.
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), event.clientX - left, event.clientY - top);
  }, { passive: false });
  const fingers = new Map();
  const pinch = () => {
    const [a, b] = [...fingers.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, width: Math.max(1, Math.hypot(a.x - b.x, a.y - b.y)) };
  };
  const pan = (dx, dy) => {
    state.view.x += dx;
    state.view.y += dy;
    state.isFitted = false;
    moveView();
  };
  canvas.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    drag = { x: event.clientX, y: event.clientY, moved: fingers.size > 1 };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag || !event.buttons || !fingers.has(event.pointerId)) {
      return;
    }
    const before = fingers.size === 2 ? pinch() : null;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (before) {
      const [now, { left, top }] = [pinch(), canvas.getBoundingClientRect()];
      pan(now.x - before.x, now.y - before.y);
      zoom(now.width / before.width, now.x - left, now.y - top);
      return;
    }
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) {
      return;
    }
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.clientX, y: event.clientY, moved: true };
    canvas.classList.add("dragging");
    pan(dx, dy);
  });
  const lift = (event) => {
    fingers.delete(event.pointerId);
    const [left] = fingers.values();
    if (drag && left) {
      drag = { ...left, moved: true }; // the other finger goes on alone
    }
  };
  ["pointerup", "pointercancel", "pointerleave"].forEach((name) => canvas.addEventListener(name, lift));
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
