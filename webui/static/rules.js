// SPDX-License-Identifier: Apache-2.0

// Rules: reordering by dragging, and inserting macros by click. Both also work
// by buttons and by typing.

import { take, words } from "./place.js";

export function rules() {
  let dragged; // the rule
  const target = (event) => {
    const over = dragged && event.target.closest?.("[data-sorts] > .rule");
    return over && over.parentElement === dragged.parentElement ? over : null;
  };
  const clear = () => document.querySelectorAll(".rule.over").forEach((rule) => rule.classList.remove("over"));

  document.addEventListener("dragstart", (event) => {
    dragged = event.target.closest?.("[data-sorts] > .rule");
    if (!dragged) return;
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", dragged.id);
    dragged.classList.add("dragged");
  });
  document.addEventListener("dragover", (event) => {
    const over = target(event);
    if (!over) return;
    event.preventDefault();
    clear();
    over.classList.add("over");
  });
  document.addEventListener("drop", (event) => {
    const over = target(event);
    if (!over || over === dragged) return;
    event.preventDefault();
    const body = new FormData(dragged.querySelector("form"));
    body.set("do", "move");
    body.set("to", [...over.parentElement.children].indexOf(over));
    take(words().prefix + "/rules/change", { method: "POST", body: new URLSearchParams(body) });
  });
  document.addEventListener("dragend", () => {
    dragged?.classList.remove("dragged");
    clear();
    dragged = undefined;
  });

  document.addEventListener("click", (event) => {
    const insert = event.target.closest("[data-insert]");
    const text = insert && document.getElementById("macro-text");
    if (!text) return;
    text.setRangeText(insert.dataset.insert, text.selectionStart, text.selectionEnd, "end");
    text.focus();
    text.dispatchEvent(new Event("input", { bubbles: true }));
  });
}
