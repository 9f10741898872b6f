// Whose decision is shown: "text", what the text in the field says, or "service", what the service decides now.

const radios = [...document.querySelectorAll("input[name=view]")];

export function view() {
  return radios.find(({ checked }) => checked).value;
}

export function setView(name) {
  for (const radio of radios) radio.checked = radio.value === name;
}

/** Call `changed()` when the user changes the view. */
export function onView(changed) {
  for (const radio of radios) radio.addEventListener("change", changed);
}
