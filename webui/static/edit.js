// SPDX-License-Identifier: Apache-2.0

// Editing a message in place: the text survives updates of the thread, and
// reloads, until it is sent or cancelled.

import { keep, kept } from "./keep.js";

const key = (field) => "artel.edit " + field.closest("article").id;
const fieldOf = (node) => node.closest?.(".rewriting")?.querySelector("textarea");

// holds moves open forms into the elements that replace theirs.
export function holds(fragment) {
  for (const form of document.querySelectorAll("form.rename")) fragment.getElementById(form.closest("li").id)?.remove();
  for (const form of document.querySelectorAll(".rewriting:not([data-sent])")) {
    const message = form.closest("article");
    const fresh = fragment.getElementById(message.id);
    if (!fresh || fresh.querySelector(".rewriting")) continue;
    const same = message.cloneNode(true);
    same.querySelector("textarea").removeAttribute("autofocus"); // it asks for the focus once
    fresh.replaceWith(same);
  }
}

export function edits() {
  document.addEventListener("input", (event) => {
    const field = fieldOf(event.target);
    if (!field) return;
    delete field.form.dataset.sent;
    keep(key(field), field.value, "sessionStorage");
  });
  document.addEventListener("focusin", (event) => {
    const field = fieldOf(event.target);
    if (!field || field.dataset.filled) return;
    field.dataset.filled = "";
    field.value = kept(key(field), "sessionStorage") ?? field.value;
  });
  // A sent or cancelled draft is deleted.
  const ends = (event) => {
    const field = fieldOf(event.target);
    if (!field) return;
    keep(key(field), "", "sessionStorage");
    field.form.dataset.sent = "";
  };
  document.addEventListener("submit", ends, { capture: true });
  document.addEventListener("click", (event) => { if (event.target.closest(".rewriting a")) ends(event); }, { capture: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !event.isComposing) ends(event); }, { capture: true });
}
