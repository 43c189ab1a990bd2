// SPDX-License-Identifier: Apache-2.0

// The editor of agents: problems are shown at their fields and set as
// aria-invalid.

export function agents() {
  const form = document.getElementById("agent-form");
  if (!form) return;
  const mark = (slot) => {
    for (const field of form.querySelectorAll(`[aria-describedby~="${CSS.escape(slot.id)}"]`)) {
      if (slot.firstElementChild) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
    }
  };
  // Tools included by a server's pattern may each have a permission.
  form.addEventListener("change", (event) => {
    if (event.target.name !== "tool") return;
    for (const row of form.querySelectorAll(`[data-of="${CSS.escape(event.target.value)}"]`)) row.classList.toggle("covered", event.target.checked);
  });
  new MutationObserver((changes) => {
    const slots = new Set(changes.map((change) => change.target.closest?.(".faults")));
    for (const slot of slots) if (slot) mark(slot);
  }).observe(form, { subtree: true, childList: true });
}
