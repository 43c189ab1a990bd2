// SPDX-License-Identifier: Apache-2.0

// The event stream of the conversation: fragments are placed as they arrive.

import { holds } from "./edit.js";
import { versionsIn } from "./panel.js";
import { parse, place, unfold } from "./place.js";

const near = 80; // pixels from the end that count as the end

export function follow() {
  const thread = document.querySelector("[data-live]");
  const scroller = document.getElementById("scroller");
  if (!thread) return;
  const offline = document.getElementById("offline");
  const toEnd = document.getElementById("to-end");

  // The reader is at the end until they scroll up, by hand even a little, and again
  // after scrolling back. Small movements caused by layout changes do not count.
  let atEnd = true, top = 0, byHand = false, own = -1;
  const goToEnd = () => {
    atEnd = true; // also if more comes before the browser tells of the scrolling
    scroller.scrollTop = scroller.scrollHeight;
    own = scroller.scrollTop;
  };
  // A question is read from its beginning, also one that is longer than the window; that of
  // a subagent may be further up than the end.
  const showQuestion = (one) => {
    const long = one.offsetHeight > scroller.clientHeight;
    if (long) atEnd = false;
    one.scrollIntoView({ block: long ? "start" : "nearest" });
  };
  scroller.addEventListener("scroll", () => {
    const left = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    const up = scroller.scrollTop < top && left >= 1;
    const byReader = scroller.scrollTop !== own;
    if (byReader && up && (byHand || left >= near)) atEnd = false;
    if (byReader && !up && left < near) {
      atEnd = true;
      byHand = false;
    }
    own = -1;
    top = scroller.scrollTop;
    toEnd.hidden = atEnd;
  }, { passive: true });
  // The wheel leaves the end at once: the next piece of an answer, which may come
  // before the scrolling, would take the reader back.
  scroller.addEventListener("wheel", (event) => {
    if (event.deltaY >= 0 || scroller.scrollTop <= 0) return;
    for (let e = event.target; e !== scroller; e = e.parentElement) if (e.scrollTop > 0) return; // scrolls by itself
    byHand = true;
    atEnd = false;
  }, { passive: true });
  scroller.addEventListener("touchmove", () => { byHand = true; }, { passive: true });
  toEnd.addEventListener("click", () => {
    goToEnd();
    document.getElementById("text").focus();
  });
  new ResizeObserver(() => { if (atEnd) goToEnd(); }).observe(document.getElementById("messages"));
  new ResizeObserver(() => { if (atEnd) goToEnd(); }).observe(scroller);
  goToEnd();
  const open = [...document.querySelectorAll(".question.open")].at(-1);
  if (open) showQuestion(open);

  // Loading earlier messages must not move the visible ones. Browsers' scroll
  // anchoring does not work at the very top, and some have none.
  document.addEventListener("htmx:before:swap", (event) => {
    if (event.target.id !== "older") return;
    const first = scroller.querySelector(".message");
    const before = first?.getBoundingClientRect().top;
    const observer = new MutationObserver(() => {
      observer.disconnect();
      if (first?.isConnected) scroller.scrollTop += first.getBoundingClientRect().top - before;
    });
    observer.observe(document.getElementById("messages"), { childList: true });
  });

  let source, last, wait, warning, retry;
  const connect = () => {
    clearTimeout(retry);
    source?.close();
    const url = new URL(thread.dataset.live, location.href);
    if (last) url.searchParams.set("after", last);
    source = new EventSource(url);
    source.addEventListener("open", () => {
      wait = 250;
      clearTimeout(warning);
      warning = undefined;
      offline.hidden = true;
    });
    source.addEventListener("message", (event) => {
      if (event.lastEventId) last = event.lastEventId;
      if (!event.data) return;
      // Scroll to a message that the reader has just sent.
      const fragment = parse(event.data);
      const sent = fragment.querySelector("article.user, .queued, .question");
      const switched = fragment.querySelector("#switched");
      const follow = !switched && (atEnd || sent && !document.getElementById(sent.id));
      const versions = versionsIn(fragment);
      const branch = fragment.querySelector("#messages");
      const asked = [...fragment.querySelectorAll(".question.open")].filter((one) => !document.getElementById(one.id)).map((one) => one.id);
      holds(fragment);
      place(fragment);
      const questions = asked.map((id) => document.getElementById(id)).filter((one) => one);
      questions.forEach(unfold);
      // Remove the unfinished answer of an ended run; it is not stored.
      if (!document.querySelector("#status.active")) for (const broken of document.querySelectorAll(".message.writing")) broken.remove();
      if (follow) goToEnd();
      if (follow && questions.length) showQuestion(questions.at(-1));
      if (branch) document.dispatchEvent(new CustomEvent("artel:branch", { detail: versions }));
      if (Object.keys(versions).length) document.dispatchEvent(new CustomEvent("artel:artifacts", { detail: versions }));
    });
    source.addEventListener("error", () => {
      source.close();
      warning ??= setTimeout(() => { offline.hidden = false; }, 1000);
      wait = Math.min((wait ?? 250) * 2, 5000);
      retry = setTimeout(again, wait);
    });
  };
  // again reconnects, unless the conversation was deleted.
  const again = async () => {
    const there = await fetch(location.pathname, { method: "HEAD" }).catch(() => null);
    if (there?.status !== 404) {
      connect();
      return;
    }
    clearTimeout(warning);
    offline.querySelector("span").textContent = offline.dataset.missing;
    offline.hidden = false;
  };
  const disconnect = () => {
    clearTimeout(retry);
    clearTimeout(warning);
    warning = undefined;
    source.close();
  };
  connect();
  window.addEventListener("pagehide", disconnect);
  window.addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
  // A browser has six connections per server. Hidden tabs close theirs, and
  // catch up when they become visible.
  let hidden;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(disconnect, 5000);
    else if (source.readyState === EventSource.CLOSED) connect();
  });
}
