// SPDX-License-Identifier: Apache-2.0

// Copy buttons of messages, of blocks of code, and of artifacts, whose text
// comes from the API.

import { tell, words } from "./place.js";

async function textOf(button) {
  const { copy, copyFrom } = button.dataset;
  if (copyFrom) {
    const response = await fetch(copyFrom);
    if (!response.ok) throw new Error(response.statusText);
    return (await response.json()).content;
  }
  if (copy === "code") return button.closest("figure").querySelector("code").textContent.replace(/\n$/, "");
  const said = button.closest("article").querySelector(".said");
  if (said) return [...said.querySelectorAll(".body")].map((body) => body.textContent).join("");
  // Hide everything else for a moment: innerText has line breaks only for
  // rendered text.
  const body = button.closest("article").querySelector(":scope > .body");
  const clone = body.cloneNode(true);
  for (const caption of clone.querySelectorAll("figcaption")) caption.remove();
  clone.classList.add("visually-hidden");
  clone.removeAttribute("id");
  clone.ariaHidden = "true";
  body.after(clone);
  const text = clone.innerText;
  clone.remove();
  return text.trim();
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
  const [copy, check] = document.getElementById("words").content.children;
  button.querySelector("svg")?.replaceWith(check.cloneNode(true));
  document.getElementById("announcement").textContent = words().copied;
  setTimeout(() => button.querySelector("svg")?.replaceWith(copy.cloneNode(true)), 1500);
});
