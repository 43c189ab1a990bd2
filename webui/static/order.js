// SPDX-License-Identifier: Apache-2.0

// Reordering processors, by buttons, which keep the focus, and by dragging.

import { take } from "./place.js";

// put moves a processor to a position, like its form.
async function put(form, to) {
  const body = new URLSearchParams(new FormData(form));
  body.set("to", to);
  await take(form.action, { method: "POST", body, about: "order" });
}

const stages = () => [...document.querySelectorAll("#stages > [data-place]")];

export function order() {
  if (!document.getElementById("stages")) return;
  document.addEventListener("click", async (event) => {
    const button = event.target.closest(".order button");
    if (!button) return;
    event.preventDefault();
    if (button.ariaDisabled === "true") return;
    const { id } = button;
    await put(button.form, button.value);
    document.getElementById(id)?.focus();
  }, true);

  let held; // the stage that is dragged
  const over = (event) => {
    const stage = held && event.target.closest?.("#stages > [data-place]");
    for (const s of stages()) s.classList.toggle("over", s === stage && s !== held);
    return stage;
  };
  document.addEventListener("dragstart", (event) => {
    const grip = event.target.closest?.("[data-grip]");
    if (!grip) return;
    held = grip.closest("[data-place]");
    event.dataTransfer.setData("text/plain", grip.dataset.grip);
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setDragImage(held, 16, 16);
  });
  document.addEventListener("dragover", (event) => { if (over(event)) event.preventDefault(); });
  document.addEventListener("dragend", () => {
    held = undefined;
    for (const s of stages()) s.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    const stage = over(event);
    if (!stage) return;
    event.preventDefault();
    if (stage !== held) put(held.querySelector(".order"), stage.dataset.place);
  });
}
