// SPDX-License-Identifier: Apache-2.0

// The preview of the next request: a gauge at the composer, and all messages
// beside the thread. It is requested when typing pauses; the previous request
// is aborted.

import { take } from "./place.js";

const pause = 300; // milliseconds without a key
const narrow = matchMedia("(max-width: 75rem)"); // as in the stylesheet

// glance observes a form; body adds the heads of its files. It returns the
// function to call after a change.
export function glance(form, body) {
  const panel = document.getElementById("glance-panel");
  let timer, asked;
  const ask = () => {
    clearTimeout(timer);
    const data = body();
    data.append("text", form.elements.text.value);
    if (!panel.hidden) data.append("whole", "1");
    take(document.querySelector(".window-line").dataset.at, { method: "POST", body: data, about: "glance", quiet: true });
    asked = true;
  };
  const changed = () => {
    clearTimeout(timer);
    if (!asked && !form.elements.text.value.trim() && !form.querySelector("#chosen > *")) return;
    timer = setTimeout(ask, pause);
  };
  const cover = () => { if (!panel.hidden) document.getElementById("main").inert = narrow.matches; };
  const close = () => {
    panel.hidden = true;
    document.getElementById("main").inert = false;
    form.elements.text.focus();
  };
  form.elements.text.addEventListener("input", changed);
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-glance]")) {
      panel.hidden = false;
      cover();
      document.getElementById("glance-title").focus();
      ask();
    } else if (event.target.closest("[data-glance-close]")) close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing || panel.hidden || document.querySelector("dialog[open], :popover-open")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    close();
  }, { capture: true });
  narrow.addEventListener("change", cover);
  changed(); // a draft that was kept
  return changed;
}
