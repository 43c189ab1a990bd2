// SPDX-License-Identifier: Apache-2.0

// Keyboard shortcuts; the help dialog lists them. They need Ctrl, Cmd or Alt,
// so that plain letters only type text.

import { keep, kept } from "./keep.js";
import { close, toggle } from "./panel.js";
import { unfold } from "./place.js";

const byAlt = {
  KeyN: () => document.querySelector("[data-key=new]").click(),
  KeyM: () => document.getElementById("text")?.focus(),
  KeyU: () => document.getElementById("file")?.click(),
  KeyP: () => document.getElementById("picker")?.togglePopover(),
  KeyG: () => document.getElementById("agent-picker")?.togglePopover(),
  KeyA: () => toggle(),
  KeyS: () => document.querySelector("#status.active .stop")?.click(),
  KeyY: () => answer(),
  KeyE: () => of("[data-edit]")?.click(),
  KeyR: () => of("[data-retry]")?.click(),
  Comma: () => of(".siblings [data-again=previous]")?.click(),
  Period: () => of(".siblings [data-again=next]")?.click(),
  ArrowUp: () => step(-1),
  ArrowDown: () => step(1),
};

// answer focuses the first open question in any thread or, from an open one,
// the next.
function answer() {
  const open = [...document.querySelectorAll(".question.open")];
  if (!open.length) return;
  const at = open.findIndex((question) => question.contains(document.activeElement));
  const question = open[(at + 1) % open.length];
  unfold(question);
  question.querySelector("button").focus({ focusVisible: true }); // also after a click
}

// of finds a control of the focused message, otherwise of the last one.
function of(control) {
  const message = document.activeElement?.closest("#messages > .message");
  return message ? message.querySelector(control) : [...document.querySelectorAll("#messages > .message " + control)].at(-1);
}

// step moves the focus from message to message.
function step(by) {
  const messages = [...document.querySelectorAll("#messages > .message")];
  if (!messages.length) return;
  const at = messages.findIndex((message) => message.contains(document.activeElement));
  const next = at < 0 ? messages.length - 1 : Math.max(0, Math.min(messages.length - 1, at + by));
  messages[next].tabIndex = -1;
  messages[next].focus({ preventScroll: true });
  messages[next].scrollIntoView({ block: "nearest" });
}

function search() {
  if (document.getElementById("sidebar").inert) close();
  const sidebar = document.getElementById("sidebar");
  if (getComputedStyle(sidebar).display === "none") sidebar.showPopover();
  document.getElementById("search").select();
}

document.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  const control = event.ctrlKey || event.metaKey;
  if (control && !event.altKey && event.code === "KeyK") {
    event.preventDefault();
    search();
  } else if (control && !event.altKey && event.key === "/") {
    event.preventDefault();
    document.getElementById("shortcuts").showModal();
  } else if (event.altKey && !control && !event.shiftKey && byAlt[event.code]) {
    event.preventDefault();
    byAlt[event.code]();
  } else if (event.key === "Escape") {
    escape(event);
  }
});

function escape(event) {
  const naming = event.target.closest?.("[data-cancel]");
  if (naming) {
    htmx.ajax("GET", naming.dataset.cancel, { swap: "place" });
    return;
  }
  const menu = document.querySelector(".versions[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
    return;
  }
  // Dialogs and popovers handle Escape first.
  if (!document.querySelector("dialog[open], :popover-open") && close()) event.preventDefault();
}

document.addEventListener("click", (event) => {
  const opens = event.target.closest("[data-open]:not(.panel)");
  if (opens) document.getElementById(opens.dataset.open).showModal();
  const closes = event.target.closest("[data-close]");
  if (closes) closes.closest("dialog").close();
});

// Preferences are submitted on change.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-autosave]");
  if (!form) return;
  fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) }).then(() => {
    // Reload the page with the new preferences, and restore the focus.
    keep("artel.focus", event.target.name, "sessionStorage");
    location.reload();
  });
});

const chosen = kept("artel.focus", "sessionStorage");
if (chosen) {
  keep("artel.focus", "", "sessionStorage");
  document.querySelector(`form[data-autosave] input[name="${CSS.escape(chosen)}"]:checked`)?.focus();
}
