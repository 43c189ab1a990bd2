// SPDX-License-Identifier: Apache-2.0

// Fields that somebody was quicker with than the scripts were with the page,
// and those that the browser filled again.

// touched says whether a field is no more as the page came.
export function touched(field) {
  if (field.type === "file") return field.files.length > 0;
  if (field.type === "checkbox") return field.checked !== field.defaultChecked;
  if (field.type === "radio") return field.checked && !field.defaultChecked;
  if (field.tagName !== "SELECT") return field.value !== field.defaultValue;
  const first = [...field.options].findLast((option) => option.defaultSelected) ?? field.options[0];
  return field.selectedOptions[0] !== first;
}

// early finds the fields that are touched already. What it returns tells the
// page so, as if it were done now. Where a browser may have filled them again,
// they are only looked at: nothing is sent twice.
export function early() {
  const fields = [...document.querySelectorAll("input, select, textarea")].filter(touched);
  const byHand = performance.getEntriesByType("navigation")[0]?.type === "navigate";
  return () => {
    for (const field of fields) {
      field.dispatchEvent(new Event("input", { bubbles: true }));
      if (byHand) field.dispatchEvent(new Event("change", { bubbles: true }));
    }
  };
}
