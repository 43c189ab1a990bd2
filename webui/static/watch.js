// SPDX-License-Identifier: Apache-2.0

// The gateway's log: filters take effect when they are chosen, and the newest
// requests come by themselves.

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
  // A browser has six connections to a server: tabs that nobody sees give theirs
  // back.
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(() => source.close(), 5000);
    else if (source.readyState === EventSource.CLOSED) connect();
  });
}
