// SPDX-License-Identifier: Apache-2.0

// Testing a model in the settings: the result replaces the model's card.

import { take } from "./place.js";

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-probe]");
  if (!form) return;
  event.preventDefault();
  const button = form.querySelector("button");
  const hint = form.querySelector("[data-probing]");
  if (button.getAttribute("aria-disabled")) return;
  const before = hint.textContent;
  button.setAttribute("aria-disabled", "true"); // it keeps the focus
  button.querySelector("use").setAttribute("href", button.querySelector("use").getAttribute("href").replace(/#.*/, "#loader-circle"));
  button.querySelector("svg").classList.add("spin");
  hint.textContent = hint.dataset.probing;
  if (await take(form.action, { method: "POST" })) return; // the card is another one
  hint.textContent = before;
  button.removeAttribute("aria-disabled");
  button.querySelector("use").setAttribute("href", button.querySelector("use").getAttribute("href").replace(/#.*/, "#flask-conical"));
  button.querySelector("svg").classList.remove("spin");
});
