// SPDX-License-Identifier: Apache-2.0

// Pictures in full window, by mouse and keys.

const steps = [.1, .25, .5, .75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16]; // of the picture's own size

export function zoom() {
  const box = document.getElementById("zoom");
  const stage = box.querySelector(".stage");
  const picture = stage.querySelector("img");
  const part = (name) => box.querySelector(`[data-zoom-${name}]`);
  let all = [], at = 0, scale = 0; // 0: it fits into the window

  const shown = () => picture.getBoundingClientRect().width / picture.naturalWidth || 1;
  const draw = () => {
    picture.style.width = scale ? picture.naturalWidth * scale + "px" : "";
    picture.style.maxWidth = picture.style.maxHeight = scale ? "none" : "";
    picture.classList.toggle("pixels", scale >= 4);
    part("scale").textContent = Math.round((scale || shown()) * 100) + " %";
  };
  const size = (to) => {
    // Keep the center in place.
    const x = (stage.scrollLeft + stage.clientWidth / 2) / stage.scrollWidth, y = (stage.scrollTop + stage.clientHeight / 2) / stage.scrollHeight;
    scale = to;
    draw();
    stage.scrollTo(x * stage.scrollWidth - stage.clientWidth / 2, y * stage.scrollHeight - stage.clientHeight / 2);
  };
  const larger = () => size(steps.find((s) => s > (scale || shown()) * 1.01) ?? steps.at(-1));
  const smaller = () => size(steps.findLast((s) => s < (scale || shown()) * .99) ?? steps[0]);
  const show = (index) => {
    at = (index + all.length) % all.length;
    const link = all[at];
    scale = 0;
    picture.removeAttribute("src");
    picture.src = link.href;
    picture.alt = link.dataset.zoom;
    part("name").textContent = link.dataset.zoom;
    part("about").textContent = all.length > 1 ? `${at + 1} / ${all.length}` : "";
    part("download").href = link.href;
    part("download").download = link.dataset.zoom;
    for (const way of ["previous", "next"]) part(way).hidden = all.length < 2;
  };
  picture.addEventListener("load", () => {
    part("about").textContent = [`${picture.naturalWidth} × ${picture.naturalHeight}`, part("about").textContent].filter(Boolean).join(" · ");
    draw();
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-zoom]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    all = [...(link.closest("#messages, #viewer") ?? document).querySelectorAll("a[data-zoom]")].filter((other) => other.checkVisibility());
    box.showModal();
    stage.focus();
    show(all.indexOf(link));
  });
  picture.addEventListener("click", () => size(scale ? 0 : Math.max(1, shown() < .99 ? 1 : 2)));
  stage.addEventListener("click", (event) => { if (event.target === stage) box.close(); });
  part("in").addEventListener("click", larger);
  part("out").addEventListener("click", smaller);
  part("fit").addEventListener("click", () => size(0));
  part("previous").addEventListener("click", () => show(at - 1));
  part("next").addEventListener("click", () => show(at + 1));
  box.addEventListener("close", () => {
    picture.removeAttribute("src");
    all[at]?.focus({ preventScroll: true });
  });
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const scrolls = scale && (stage.scrollWidth > stage.clientWidth);
    const does = { "+": larger, "=": larger, "-": smaller, "0": () => size(0) };
    if (!scrolls && all.length > 1) Object.assign(does, { ArrowLeft: () => show(at - 1), ArrowRight: () => show(at + 1) });
    Object.assign(does, { PageUp: () => show(at - 1), PageDown: () => show(at + 1) });
    if (!does[event.key]) return;
    event.preventDefault();
    does[event.key]();
  });
}
