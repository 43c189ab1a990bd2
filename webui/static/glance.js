// SPDX-License-Identifier: Apache-2.0

// What the model would be sent with the message that is being written: a gauge
// by the composer, and all of it beside the thread. It is asked for when the
// typing pauses, and what was asked before is broken off.

import { take } from "./place.js";

const pause = 300; // milliseconds without a key
const narrow = matchMedia("(max-width: 75rem)"); // as in the stylesheet

// glance follows a form whose files have heads that body adds; it returns what
// is to be called when something has changed.
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
