// SPDX-License-Identifier: Apache-2.0

// Countdowns: the time left to answer a question, and until a model call is
// repeated.

export function left() {
  const tell = () => {
    for (const place of document.querySelectorAll("[data-until]")) {
      const seconds = Math.max(0, Math.round((new Date(place.dataset.until) - Date.now()) / 1000));
      place.textContent = place.dataset.in ? place.dataset.in.replace("%", seconds) : "(" + Math.floor(seconds / 60) + ":" + String(seconds % 60).padStart(2, "0") + " " + place.dataset.left + ")";
    }
  };
  setInterval(tell, 1000);
  new MutationObserver((changes) => {
    if (changes.some((change) => [...change.addedNodes].some((node) => node.querySelector?.("[data-until]")))) tell();
  }).observe(document.getElementById("main"), { childList: true, subtree: true });
  tell();
}
