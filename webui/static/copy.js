// SPDX-License-Identifier: Apache-2.0

// Copy buttons: of a message, of a block of code, and of an artifact, whose
// text comes from the API.

import { tell, words } from "./place.js";

async function textOf(button) {
  const { copy, copyFrom } = button.dataset;
  if (copyFrom) {
    const response = await fetch(copyFrom);
    if (!response.ok) throw new Error(response.statusText);
    return (await response.json()).content;
  }
  const around = button.closest("figure, article");
  const parts = [...around.querySelectorAll(copy)];
  return parts.map((part) => (part.tagName === "CODE" ? part.textContent : part.innerText)).join("\n\n").trim();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(await textOf(button));
  } catch {
    tell(words().failed);
    return;
  }
  const [copy, check] = document.getElementById("words").content.querySelectorAll("svg");
  button.querySelector("svg")?.replaceWith(check.cloneNode(true));
  document.getElementById("announcement").textContent = words().copied;
  setTimeout(() => button.querySelector("svg")?.replaceWith(copy.cloneNode(true)), 1500);
});
