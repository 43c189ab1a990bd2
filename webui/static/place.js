// SPDX-License-Identifier: Apache-2.0

// Fragments: HTML from the server, each element of which determines its place.

let morph; // htmx's own: changes an element into another with as little as it takes

htmx.registerExtension("artel", {
  init(api) {
    morph = api.morph;
  },
  handle_swap(style, _target, fragment) {
    if (style !== "place") return false;
    place(fragment);
    return true;
  },
  // Keep cards open or closed as the reader left them, and the frames of apps as high as
  // they have become.
  htmx_before_morph_attr(element, { attrName }) {
    return !(attrName === "open" && element.tagName === "DETAILS" || attrName === "style" && element.tagName === "IFRAME");
  },
});

// parse parses HTML without running any of it.
export function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

// place puts every element of a fragment in place of the element with the same
// id; otherwise at the end of the element named by data-into, or before its
// child selected by data-before. An element with data-folds closes the card
// with its id, one with data-gone removes the element.
export function place(fragment) {
  for (const fresh of [...fragment.children]) {
    let old = document.getElementById(fresh.id);
    const { before, folds } = fresh.dataset;
    delete fresh.dataset.before;
    delete fresh.dataset.folds;
    if (old?.matches(".toast")) {
      old.remove(); // it is said anew, and stays as long as a new one
      old = null;
    }
    if ("gone" in fresh.dataset) {
      old?.remove();
    } else if (old) {
      const holder = document.createDocumentFragment();
      holder.append(fresh);
      for (const row of old.querySelectorAll("li:has(> form.rename)")) { // a name that somebody is writing stays in a list that comes anew
        const same = row.cloneNode(true);
        same.querySelector("input").removeAttribute("autofocus"); // it asks for the focus once
        holder.getElementById(row.id)?.replaceWith(same);
      }
      const held = old.contains(document.activeElement);
      const again = held && document.activeElement.closest("[data-again]")?.dataset.again;
      const among = again && [...old.querySelectorAll("[data-again]")].filter((one) => one.dataset.again === again).indexOf(document.activeElement);
      morph(old, holder, false);
      const now = document.getElementById(fresh.id) ?? old;
      htmx.process(now);
      if (now.id === "heading") document.title = now.textContent.trim() + " · Artel";
      const asks = now.querySelector("[autofocus], [data-focus]");
      if (folds !== undefined) now.open = false;
      const same = again && [...now.querySelectorAll("[data-again]")].filter((one) => one.dataset.again === again)[among];
      if (same) {
        same.focus({ preventScroll: true });
      } else if (held && folds !== undefined) {
        now.querySelector("summary").focus();
      } else if (asks) {
        start(asks);
      } else if (held && !now.contains(document.activeElement)) {
        (now.querySelector("a, button:enabled") ?? seen(".question.open button") ?? document.getElementById("text"))?.focus();
      }
    } else {
      const into = fresh.dataset.into && document.querySelector(fresh.dataset.into);
      if (into) {
        into.insertBefore(fresh, before ? [...into.children].find((child) => child.matches(before)) ?? null : null);
        htmx.process(fresh);
      }
    }
  }
}

// start gives an element the focus. The one line of an input is selected. In a
// text nothing is: the caret is at its beginning, at the first conflict, or, in
// a message, at its end.
export function start(element) {
  if (element.matches("textarea")) {
    const at = element.matches(".rewriting *") ? element.value.length : "conflict" in element.dataset ? Math.max(0, element.value.search(/^<{7} /m)) : 0;
    element.blur(); // the browser shows the caret of a field that gets the focus
    element.setSelectionRange(at, at);
    element.scrollTop = 0;
  }
  element.focus();
  if (element.matches("input")) element.select();
}

// seen is the first element outside of folded cards.
const seen = (selector) => [...document.querySelectorAll(selector)].find((one) => one.checkVisibility());

// unfold opens all cards around an element.
export function unfold(element) {
  for (let card = element.closest("details"); card; card = card.parentElement.closest("details")) card.open = true;
}

const underWay = new Map(); // requests, by what they are about

// take fetches a fragment and places it. It returns whether that succeeded;
// errors are shown as a toast from the server or a local one. A later request
// for the same subject aborts an earlier one. A quiet request does not report
// an unreachable server.
export async function take(url, { about = url, quiet = false, ...options } = {}) {
  const abort = new AbortController();
  underWay.get(about)?.abort();
  underWay.set(about, abort);
  let response, html;
  try {
    response = await fetch(url, { ...options, signal: abort.signal, headers: { "HX-Request": "true", "HX-Current-URL": location.href } });
    html = await response.text();
  } catch {
    if (!abort.signal.aborted && !quiet) tell(words().lost);
    return false;
  } finally {
    if (underWay.get(about) === abort) underWay.delete(about);
  }
  if (response.headers.get("HX-Redirect")) {
    location.assign(response.headers.get("HX-Redirect"));
    return true;
  }
  if (abort.signal.aborted || quiet && !response.ok) return false;
  place(parse(html));
  return response.ok;
}

// tell shows a toast.
export function tell(text, bad = true) {
  const toast = document.getElementById("words").content.querySelector(".toast").cloneNode(true);
  if (bad) toast.setAttribute("role", "alert");
  toast.querySelector("span").textContent = text;
  const fragment = document.createDocumentFragment();
  fragment.append(toast);
  place(fragment);
}

// words are the texts of scripts, in the reader's language.
export function words() {
  return document.getElementById("words").dataset;
}

// Errors of htmx requests. Explanations by the server are placed already.
document.addEventListener("htmx:error", () => tell(words().lost));

// A picture that cannot be displayed is replaced by its description.
function broken(picture) {
  if (picture.matches(".thumb, .shown .media")) picture.classList.add("broken");
}
document.addEventListener("error", (event) => { if (event.target instanceof HTMLImageElement) broken(event.target); }, true);
for (const picture of document.images) if (picture.complete && picture.getAttribute("src") && !picture.naturalWidth) broken(picture);
