// SPDX-License-Identifier: Apache-2.0

// Forms with files: upload progress, and drag and drop.

import { words } from "./place.js";

// post sends a body and resolves to the JSON of the response; on failure its
// error says why, with the status, or that it was cancelled.
export function post(request, url, body, progress) {
  return new Promise((resolve) => {
    request.open("POST", url);
    request.setRequestHeader("Accept", "application/json");
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => { if (event.lengthComputable) progress(event.loaded, event.total); });
    request.addEventListener("load", () => {
      const answer = request.response ?? {};
      resolve(request.status < 400 ? answer : { error: answer.error ?? answer.detail ?? words().broken, status: request.status });
    });
    request.addEventListener("error", () => resolve({ error: words().lost }));
    request.addEventListener("abort", () => resolve({ cancelled: true }));
    request.send(body);
  });
}

// Fields whose label is their button show the name of the chosen file there.
document.addEventListener("change", (event) => {
  const names = document.getElementById(event.target.dataset.names ?? "");
  if (names) names.textContent = [...event.target.files].map((file) => file.name).join(", ");
});

// drops accepts files dropped anywhere on the page, and highlights the target
// during a drag.
export function drops(take, mark) {
  const carries = (event) => event.dataTransfer?.types.includes("Files");
  let depth = 0;
  document.addEventListener("dragenter", (event) => { if (carries(event)) mark(++depth > 0); });
  document.addEventListener("dragleave", (event) => { if (carries(event)) mark(--depth > 0); });
  document.addEventListener("dragover", (event) => { if (carries(event)) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    depth = 0;
    mark(false);
    take(event.dataTransfer.files);
  });
}
