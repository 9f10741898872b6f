// The verdicts as a file for others: CSV, JSON or Markdown.

import { briefly, VERDICTS } from "./labels.js";
import { expectedOf } from "./expectations.js";

const FORMATS = {
  csv: { type: "text/csv", name: "verdicts.csv", write: csv },
  json: { type: "application/json", name: "verdicts.json", write: json },
  markdown: { type: "text/markdown", name: "verdicts.md", write: markdown },
};

/**
 * The verdicts in a format as {type, name, text}. `lines` are those of the table, {text, row, ...}; `rows` and `others`
 * hold the verdicts of each, by the file and by a second version or null.
 */
export function exported(format, lines, rows, others) {
  const { type, name, write } = FORMATS[format];
  const read = lines.filter(({ row }) => row !== undefined);
  return { type, name, text: write(read, rows, others) };
}

/** The URLs of the file's host that are blocked, for whom and by which rule, as a CSV file {type, name, text}. */
export function blocked(lines, rows) {
  const found = lines
    .filter(({ foreign }) => !foreign)
    .flatMap(({ text, row }) => (rows[row] ?? []).map((verdict) => ({ ...verdict, text })))
    .filter(({ verdict }) => verdict === "disallow")
    .map(({ text, agent, dialect, verdict, rule }) => [text, agent, dialect, verdict, rule?.text, rule?.line]);
  return { type: "text/csv", name: "blocked-urls.csv", text: csvOf([["url", "crawler", "dialect", "verdict", "rule", "line"], ...found]) };
}

/** Save a text as a file of the user. */
export function save({ type, name, text }) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function records(lines, rows, others) {
  return lines.flatMap((line) =>
    rows[line.row].map((row, column) => ({
      url: line.text,
      crawler: row.agent,
      dialect: row.dialect,
      verdict: row.verdict,
      reason: row.reason,
      line: row.rule?.line ?? null,
      partial: row.partial ?? false,
      explanation: row.explanation.summary,
      expected: expectedOf(line, row),
      ...Object.fromEntries(Object.entries(row.purposes ?? {}).map(([name, { state }]) => [name, state])),
      ...(others && { verdict_of_second_version: others[line.row][column].verdict }),
    })),
  );
}

function csv(lines, rows, others) {
  const all = records(lines, rows, others);
  const names = Object.keys(all[0] ?? {});
  return csvOf([names, ...all.map((record) => names.map((name) => record[name]))]);
}

function csvOf(records) {
  return records.map((values) => `${values.map(field).join(",")}\r\n`).join("");
}

/** A field of RFC 4180. Spreadsheets would take a text that starts like a formula for one. */
function field(value) {
  const text = String(value ?? "").replace(/^[=+\-@\t\r]/, "'$&");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function json(lines, rows, others) {
  return `${JSON.stringify(records(lines, rows, others), null, 2)}\n`;
}

function markdown(lines, rows, others) {
  const columns = rows[lines[0]?.row] ?? [];
  const several = new Set(columns.map(({ agent }) => agent)).size < columns.length;
  const head = ["URL", ...columns.map(({ agent, dialect }) => (several ? `${agent} (${dialect})` : agent))];
  const body = lines.map((line) => [line.text, ...rows[line.row].map((row, column) => cell(row, others?.[line.row][column]))]);
  const table = [head, head.map(() => "---"), ...body];
  return table.map((values) => `| ${values.map(escaped).join(" | ")} |\n`).join("");
}

function cell(row, other) {
  const said = `${VERDICTS[row.verdict] ?? row.verdict} (${briefly(row)})`;
  return other && other.verdict !== row.verdict ? `${said} → ${VERDICTS[other.verdict] ?? other.verdict} (${briefly(other)})` : said;
}

function escaped(text) {
  return text.replace(/[\\`*_{}[\]<>|#]/g, "\\$&");
}
