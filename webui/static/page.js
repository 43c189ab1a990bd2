// SPDX-License-Identifier: Apache-2.0

// Makes the page live. Without it everything works by forms and links.

// place puts every element of a fragment where it belongs: in the place of the
// element with its id, else at the end of the element that data-into names.
function place(html) {
  const fragment = new DOMParser().parseFromString(html, "text/html");
  const atEnd = nearEnd();
  for (const element of [...fragment.body.children]) {
    const fresh = document.adoptNode(element);
    const old = document.getElementById(fresh.id);
    if (old) {
      keep(old, fresh);
      old.replaceWith(fresh);
    } else {
      document.querySelector(fresh.dataset.into)?.append(fresh);
    }
  }
  if (atEnd) toEnd();
}

// keep carries over what the reader did: opened cards and the focus.
function keep(old, fresh) {
  if (old.open) fresh.open = true;
  for (const card of old.querySelectorAll("details[open][id]")) {
    const same = fresh.querySelector("#" + CSS.escape(card.id));
    if (same) same.open = true;
  }
  // A message that arrives again may know less of its cards than the page.
  for (const card of old.querySelectorAll("details[id]:not(.running)")) {
    fresh.querySelector("#" + CSS.escape(card.id))?.replaceWith(card);
  }
}

// below is how far the end of the thread lies under the window's edge. On
// narrow screens the artifacts follow after it.
function below() {
  return document.getElementById("main").getBoundingClientRect().bottom - window.innerHeight;
}

function nearEnd() {
  return below() < 160;
}

function toEnd() {
  window.scrollBy({ top: below() });
}

function follow() {
  const thread = document.querySelector("[data-live]");
  if (!thread) return;
  const source = new EventSource(thread.dataset.live);
  source.addEventListener("message", (event) => {
    if (event.data) place(event.data);
  });
  window.addEventListener("pagehide", () => source.close());
  toEnd();
}

// The composer sends without leaving the page; the message itself arrives by
// the event stream.
function composer() {
  const form = document.getElementById("composer");
  if (!form) return;
  const text = form.elements.text;
  const input = form.elements.file;
  const button = form.querySelector("button[type=submit]");
  const problem = document.getElementById("composer-error");

  const say = (message) => {
    problem.textContent = message;
    problem.hidden = !message;
  };
  // The browser's input forgets the first choice when one chooses again, so
  // the chosen files are kept here and put into it.
  let files = [];
  const list = () => {
    const all = new DataTransfer();
    for (const file of files) all.items.add(file);
    input.files = all.files;
    document.getElementById("files").replaceChildren(...files.map((file) => {
      const item = document.createElement("li");
      const name = document.createElement("bdi");
      const remove = document.createElement("button");
      name.textContent = file.name;
      remove.type = "button";
      remove.textContent = "×";
      remove.setAttribute("aria-label", form.dataset.remove + " " + file.name);
      remove.addEventListener("click", () => {
        files = files.filter((other) => other !== file);
        list();
        text.focus();
      });
      item.append(name, remove);
      return item;
    }));
  };
  const attach = (more) => {
    files = [...files, ...more];
    list();
  };

  input.addEventListener("change", () => attach(input.files));
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  text.addEventListener("paste", (event) => {
    if (event.clipboardData.files.length > 0) {
      event.preventDefault();
      attach(event.clipboardData.files);
    }
  });
  form.addEventListener("dragover", (event) => event.preventDefault());
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    attach(event.dataTransfer.files);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    const label = button.textContent;
    button.disabled = true;
    button.textContent = form.dataset.sending;
    say("");
    try {
      const response = await fetch(form.action, {
        method: "POST", body: new FormData(form), headers: { Accept: "application/json" },
      });
      const answer = await response.json();
      if (!response.ok) {
        say(answer.error ?? answer.detail);
      } else if (new URL(answer.url, location.href).pathname !== location.pathname) {
        location.assign(answer.url);
      } else {
        form.reset();
        files = [];
        list();
      }
    } catch {
      say(form.dataset.lost);
    } finally {
      button.disabled = false;
      button.textContent = label;
      text.focus();
    }
  });
}

// Stopping a run leaves the page where it is.
document.addEventListener("submit", (event) => {
  if (event.target.id !== "status") return;
  event.preventDefault();
  fetch(event.target.action, { method: "POST", headers: { Accept: "application/json" } }).catch(() => {
    const form = document.getElementById("composer");
    form.querySelector("[role=alert]").textContent = form.dataset.lost;
    form.querySelector("[role=alert]").hidden = false;
  });
});

composer();
follow();
