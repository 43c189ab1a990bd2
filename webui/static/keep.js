// SPDX-License-Identifier: Apache-2.0

// Local storage. Without it (private windows, settings) the page works, but
// forgets.

export function kept(key, storage = "localStorage") {
  try {
    return window[storage].getItem(key);
  } catch {
    return null;
  }
}

// keep stores a text; an empty one is deleted.
export function keep(key, text, storage = "localStorage") {
  try {
    if (text) window[storage].setItem(key, text);
    else window[storage].removeItem(key);
  } catch {
    // no storage
  }
}
