// Write the page's copy of CodeMirror, one module with the licences of what it contains: build.mjs FILE, after `npm ci`.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const { outputFiles, metafile } = await build({
  absWorkingDir: here("."),
  alias: { "style-mod": "./style-mod.js", "style-mod/src/style-mod.js": "./node_modules/style-mod/src/style-mod.js" },
  bundle: true,
  charset: "utf8",
  entryPoints: ["exports.js"],
  format: "esm",
  legalComments: "none",
  metafile: true,
  minify: true,
  target: "es2022",
  write: false,
});

const [output] = Object.values(metafile.outputs);
const used = Object.entries(output.inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
const packages = new Set(used.flatMap(([path]) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []));

/** The packages of each licence text. */
const licences = new Map();
for (const name of [...packages].sort()) {
  const read = (file) => readFileSync(here(`node_modules/${name}/${file}`), "utf8");
  const text = read("LICENSE").trim();
  licences.set(text, [...(licences.get(text) ?? []), `${name} ${JSON.parse(read("package.json")).version}`]);
}
const notices = [...licences].map(([text, names]) => `${names.join(", ")}\n\n${text}`).join("\n\n\n");
writeFileSync(process.argv[2], `/*! Made by deploy/codemirror/build.mjs.\n\n${notices}\n*/\n${outputFiles[0].text}`);
