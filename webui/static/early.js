// SPDX-License-Identifier: Apache-2.0

// Fields changed before the scripts were loaded, by the user or by the
// browser's form restoration.

// touched reports whether a field differs from the rendered page.
export function touched(field) {
  if (field.type === "file") return field.files.length > 0;
  if (field.type === "checkbox") return field.checked !== field.defaultChecked;
  if (field.type === "radio") return field.checked && !field.defaultChecked;
  if (field.tagName !== "SELECT") return field.value !== field.defaultValue;
  const first = [...field.options].findLast((option) => option.defaultSelected) ?? field.options[0];
  return field.selectedOptions[0] !== first;
}

// early finds changed fields. The function it returns dispatches their events
// as if they had changed now. For fields that the browser may have restored,
// nothing that sends a request is dispatched.
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
