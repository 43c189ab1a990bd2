// SPDX-License-Identifier: Apache-2.0

// Checking a service or a tool: each step is shown as it ends, and the key stays in its field.

import { parse, place, tell, words } from "./place.js";

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-check]");
  if (!form || event.submitter?.hasAttribute("formaction")) return;
  event.preventDefault();
  const button = form.querySelector("#do-check");
  if (button.getAttribute("aria-disabled")) return;
  button.setAttribute("aria-disabled", "true"); // it keeps the focus
  try {
    const response = await fetch(form.dataset.check, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { "HX-Request": "true" } });
    if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
      place(parse(await response.text()));
      return;
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const one of events) {
        const data = one.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).replace(/^ /, ""));
        if (data.length) place(parse(data.join("\n")));
      }
    }
    document.getElementById("save-service")?.matches("[data-focus]") && document.getElementById("save-service").focus();
  } catch {
    tell(words().lost);
  } finally {
    button.removeAttribute("aria-disabled");
  }
});

// All models or tools, or some.
document.addEventListener("change", (event) => {
  const { name } = event.target;
  if (!["model", "tool"].includes(name) || !event.target.form?.matches("[data-check]") || !event.target.checked) return;
  const all = event.target.value === "*";
  for (const box of event.target.form.querySelectorAll(`input[name=${name}]`)) {
    if (box !== event.target && (all || box.value === "*")) box.checked = false;
  }
});
