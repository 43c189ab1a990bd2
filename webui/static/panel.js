// SPDX-License-Identifier: Apache-2.0

// Artifacts beside the thread. A link within the conversation replaces only the
// panel; URLs are the server's.

import { keep, kept } from "./keep.js";
import { start, take } from "./place.js";

const narrow = matchMedia("(max-width: 75rem)"); // as in the stylesheet
const shut = "artel.panel";

const element = () => document.getElementById("panel");

// inside returns the URL if it is a view of this conversation's panel.
function inside(href) {
  const url = new URL(href, location.href);
  if (url.hash) return null; // a place on the page that is shown
  const thread = element()?.dataset.thread;
  const own = thread && url.origin === location.origin && (url.pathname === thread || url.pathname.startsWith(thread + "/a"));
  return own ? url : null;
}

let full = false; // the artifact has the whole window
let opener; // what had the focus before the panel took it
let going; // of the view that is on its way into the panel
let missed; // what the list told of changes meanwhile

// go shows a view of the panel and adds it to the history.
export async function go(url, { push = true } = {}) {
  const before = element();
  const wasViewer = before.dataset.open === "viewer";
  if (!before.contains(document.activeElement) && document.activeElement !== document.body) opener = document.activeElement;
  const turn = going = {};
  const well = await take(url, { about: "panel" });
  if (turn !== going) return; // the reader went on meanwhile
  going = undefined;
  if (well) arrive(url, push, wasViewer);
  if (missed) refresh(missed);
}

function arrive(url, push, wasViewer) {
  if (push) history.pushState(null, "", url);
  const panel = element();
  document.body.classList.toggle("panel-closed", Boolean(kept(shut)) && panel.dataset.open === "list");
  if (panel.dataset.open === "list") full = false;
  document.getElementById("plan-details")?.toggleAttribute("open", panel.dataset.open === "list"); // an artifact needs the room
  cover();
  resume();
  const editor = panel.querySelector(".editing textarea");
  if (editor) {
    start(editor);
  } else if (panel.dataset.open === "viewer") {
    document.getElementById("viewer-title").focus({ preventScroll: true });
  } else if (panel.classList.contains("shown") && narrow.matches) {
    panel.querySelector("a, button")?.focus();
  } else if (wasViewer || !panel.contains(document.activeElement)) {
    (opener?.isConnected ? opener : document.getElementById("panel-toggle")).focus?.({ preventScroll: true });
  }
}

// cover keeps the focus visible: on narrow screens the panel covers the thread.
function cover() {
  const panel = element();
  panel.classList.toggle("full", full && panel.dataset.open === "viewer");
  panel.querySelector("[data-full]")?.setAttribute("aria-pressed", full);
  const covers = narrow.matches && (panel.dataset.open === "viewer" || panel.classList.contains("shown")) || panel.classList.contains("full");
  document.getElementById("main").inert = covers;
  document.getElementById("sidebar").inert = covers;
}

// toggle shows or hides the list; it closes a viewer.
export function toggle() {
  const panel = element();
  if (!panel) return;
  if (panel.dataset.open === "viewer" || narrow.matches && panel.classList.contains("shown")) {
    go(panel.dataset.thread);
  } else if (narrow.matches) {
    go(panel.dataset.list);
  } else {
    const closed = document.body.classList.toggle("panel-closed");
    keep(shut, closed ? "closed" : "");
    if (closed) document.getElementById("panel-toggle").focus();
  }
}

// close closes a panel that covers the thread, and reports whether there was
// one.
export function close() {
  const panel = element();
  if (!panel || panel.dataset.open !== "viewer" && !(narrow.matches && panel.classList.contains("shown"))) return false;
  go(panel.dataset.thread);
  return true;
}

// refresh reloads the artifact on display after a change, and marks what is new
// in it.
function refresh(changed) {
  missed = going && changed;
  if (going) return;
  const shown = document.getElementById("viewer");
  const item = shown && changed[shown.dataset.artifactShown];
  if (!item || shown.querySelector(".editing")) return;
  // Beside an older version only the link to the newest changes.
  const other = "follows" in shown.dataset && item.version !== shown.dataset.version;
  if (!other && item.state === shown.dataset.state) return;
  const pieces = () => [...document.querySelectorAll("#viewer :is(.block, .line)")];
  const before = new Set(pieces().map((piece) => piece.textContent));
  take(location.href, { about: "panel" }).then((well) => {
    if (!well) return;
    cover();
    for (const piece of pieces()) {
      if (before.has(piece.textContent)) continue;
      piece.classList.add("changed");
      piece.addEventListener("animationend", () => piece.classList.remove("changed"), { once: true });
    }
  });
}

// act posts a form of the panel, and shows the response in the panel.
async function act(form, submitter) {
  const typed = form.querySelector("textarea");
  form.closest(".versions")?.removeAttribute("open");
  const turn = going = {};
  const well = await take(form.getAttribute("action"), { method: "POST", body: new FormData(form, submitter), about: "panel" });
  if (turn !== going) return;
  going = undefined;
  if (well && typed) keep(unsaved, "", "sessionStorage");
  if (well && element().dataset.self !== location.pathname + location.search) arrive(element().dataset.self, true, false);
}

// The text in the editor is kept until it is saved, also while the reader views
// something else.
const unsaved = "artel.editing";

function resume() {
  const text = document.querySelector(".editing textarea");
  const draft = JSON.parse(kept(unsaved, "sessionStorage") ?? "null");
  if (text && draft?.at === text.form.getAttribute("action") && draft.base === text.form.elements.base.value) {
    text.value = draft.text;
    text.setSelectionRange(0, 0);
  }
}

function keepEditing(text) {
  keep(unsaved, JSON.stringify({ at: text.form.getAttribute("action"), base: text.form.elements.base.value, text: text.value }), "sessionStorage");
}

export function panel() {
  if (!element()) return;
  if (kept(shut) && !narrow.matches && element().dataset.open === "list") document.body.classList.add("panel-closed");
  cover();
  narrow.addEventListener("change", cover);

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-full]")) {
      full = !full;
      cover();
      return;
    }
    if (event.target.closest("[data-print]")) {
      print();
      return;
    }
    const link = event.target.closest("a[href]");
    if (!link || link.target || link.hasAttribute("download") || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const url = inside(link.href);
    if (!url) return;
    event.preventDefault();
    if (link.closest("[popover]:popover-open")) link.closest("[popover]").hidePopover();
    if (link.id === "panel-toggle") toggle();
    else if (link.hasAttribute("data-close-panel") && element().dataset.open === "list" && !narrow.matches) toggle();
    else go(url);
  });
  addEventListener("popstate", () => {
    if (inside(location.href)) go(location.href, { push: false });
    else location.reload();
  });
  // After a branch switch, close an artifact that is not on the branch.
  document.addEventListener("artel:branch", (event) => {
    const shown = document.getElementById("viewer");
    if (shown && !shown.querySelector(".editing") && !(shown.dataset.artifactShown in event.detail)) go(element().dataset.list);
  });
  document.addEventListener("artel:artifacts", (event) => refresh(event.detail));
  // Only one menu is open; a click elsewhere closes it.
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll(".versions[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.closest("#panel") || event.target.method !== "post") return;
    event.preventDefault();
    act(event.target, event.submitter);
  });
  document.addEventListener("input", (event) => {
    if (event.target.matches(".editing textarea")) keepEditing(event.target);
    if (event.target.id === "slider") event.target.setAttribute("aria-valuetext", version(event.target).querySelector("span").textContent);
  });
  document.addEventListener("change", (event) => {
    if (event.target.id === "slider") go(version(event.target).href);
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches?.(":is(.editing, .rewriting) textarea") || event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  });
  resume();
}

// version is the link to the version selected by the slider.
function version(slider) {
  const links = [...document.querySelectorAll("#versions [data-version-link]")];
  return links[links.length - 1 - slider.value];
}

// changes compares the list of artifacts before and after a fragment, whether
// the list is shown or not.
export function versionsIn(fragment) {
  const found = {};
  for (const item of fragment.querySelectorAll("[data-artifact][data-version]")) {
    found[item.dataset.artifact] = { version: item.dataset.version, state: item.dataset.state };
  }
  return found;
}
