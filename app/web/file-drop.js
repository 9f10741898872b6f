// Files that are dropped on the page go into the field below the pointer.

import { count } from "./text.js";

const LARGEST = 2_000_000;

/** Let `area` take a dropped file: `take(text)` gets its text, `complain(why)` a sentence if it is not taken. */
export function takeDrops(area, take, complain) {
  takeDroppedFiles(area, async (file) => {
    if (file.size > LARGEST) complain(`This file has ${count(file.size, "byte")}; ${LARGEST.toLocaleString("en")} at most are taken.`);
    else take(await file.text());
  });
}

/** Let `area` take a dropped file by `take(file)`. */
export function takeDroppedFiles(area, take) {
  area.addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    area.classList.add("dropping");
  });
  area.addEventListener("dragleave", (event) => {
    if (!area.contains(event.relatedTarget)) area.classList.remove("dropping");
  });
  area.addEventListener("drop", (event) => {
    area.classList.remove("dropping");
    const [file] = event.dataTransfer.files;
    if (file === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    take(file);
  });
}
