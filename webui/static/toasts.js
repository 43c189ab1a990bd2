// SPDX-License-Identifier: Apache-2.0

// Toasts disappear after a while, but not while they have the focus or the
// pointer.

const stay = 10000; // milliseconds

export function toasts() {
  // Remove the query of a deletion, so that a reload does not repeat its toast.
  if (location.search.startsWith("?deleted=")) history.replaceState(null, "", location.pathname);

  const region = document.getElementById("toasts");
  const watch = (toast) => {
    const leave = () => {
      if (!toast.isConnected) return;
      if (toast.matches(":hover, :focus-within")) setTimeout(leave, stay / 2);
      else toast.remove();
    };
    setTimeout(leave, stay);
  };
  for (const toast of region.children) watch(toast);
  new MutationObserver((changes) => {
    for (const change of changes) for (const node of change.addedNodes) if (node instanceof Element) watch(node);
  }).observe(region, { childList: true });
  region.addEventListener("click", (event) => {
    if (event.target.closest("[data-dismiss]")) event.target.closest(".toast").remove();
  });
}
