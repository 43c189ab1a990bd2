// SPDX-License-Identifier: Apache-2.0

// The gateway's log: filters are applied on change, and new requests arrive
// live.

import { parse, place } from "./place.js";

document.addEventListener("change", (event) => event.target.closest("form[data-submits]")?.requestSubmit());

export function watch() {
  const url = document.querySelector("[data-watch]")?.dataset.watch;
  if (!url) return;
  let source, hidden;
  const connect = () => {
    source?.close();
    source = new EventSource(url);
    source.addEventListener("message", (event) => { if (event.data) place(parse(event.data)); });
  };
  connect();
  window.addEventListener("pagehide", () => source.close());
  window.addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
  // A browser has six connections per server: hidden tabs close theirs.
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(() => source.close(), 5000);
    else if (source.readyState === EventSource.CLOSED) connect();
  });
}
