// SPDX-License-Identifier: Apache-2.0

// What the browser keeps for the reader. Where it keeps nothing (private
// windows, settings), the page works all the same and only forgets.

export function kept(key, storage = "localStorage") {
  try {
    return window[storage].getItem(key);
  } catch {
    return null;
  }
}

// keep stores a text; an empty one is forgotten.
export function keep(key, text, storage = "localStorage") {
  try {
    if (text) window[storage].setItem(key, text);
    else window[storage].removeItem(key);
  } catch {
    // nothing is kept here
  }
}
