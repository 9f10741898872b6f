// URLs from a file or a paste: a list, one per line, or those of a sitemap (sitemaps.org).
//
// A sitemap is only read here, never fetched. It may be compressed.

import { count, linesOf } from "./text.js";

const LARGEST = 10_000_000;
const MOST_URLS = 50_000;

const DEEPEST = 10;
const BROKEN = "This XML cannot be read as a sitemap: it needs to be well-formed, with a urlset element.";
const SECTIONS = [["<!--", "-->"], ["<![CDATA[", "]]>"], ["<?", "?>"], ["</", ">"], ["<", ">"]];
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** A file that is not taken; the message is a sentence for the user. */
export class UnusableList extends Error {}

/** The text of a File, inflated if it is compressed. Throws UnusableList. */
export async function listText(file) {
  if (file.size > LARGEST) throw tooLarge(`has ${count(file.size, "byte")}`);
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (head[0] !== 0x1f || head[1] !== 0x8b) return file.text();
  return inflated(file.stream().pipeThrough(new DecompressionStream("gzip")).getReader());
}

async function inflated(reader) {
  const decoder = new TextDecoder();
  let [text, size] = ["", 0];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      size += value.length;
      if (size > LARGEST) break;
      text += decoder.decode(value, { stream: true });
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UnusableList("This file cannot be decompressed: it is damaged or cut.");
  }
  reader.cancel();
  throw tooLarge("decompresses to more");
}

function tooLarge(size) {
  return new UnusableList(`This file ${size}; ${count(LARGEST, "byte")} at most are taken. Split it.`);
}

/** Whether a text is XML, to be read as a sitemap, and not a list of URLs. */
export function isXml(text) {
  return /^\uFEFF?\s*</.test(text.slice(0, 1000));
}

/** The lines for the field of URLs: those of a list, or the URLs of a sitemap. Throws UnusableList. */
export function urlsOf(text) {
  if (text.length > LARGEST) throw tooLarge("is larger");
  const urls = isXml(text) ? sitemapUrls(text.replace(/^\uFEFF/, "")) : linesOf(text.replace(/^\uFEFF/, "")).filter((line) => line.trim() !== "");
  if (urls.length === 0) throw new UnusableList("There is no URL in this file.");
  if (urls.length > MOST_URLS) {
    throw new UnusableList(`This file has ${count(urls.length, "URL")}; ${MOST_URLS.toLocaleString("en")} at most are taken. Split it.`);
  }
  return urls;
}

function sitemapUrls(text) {
  const urls = [];
  const open = [];
  let loc = "";
  for (const { name, closes, empty, words } of partsOf(text)) {
    if (words !== undefined) loc += words;
    else if (closes && open.pop() !== name) throw new UnusableList(BROKEN);
    else if (closes && isLoc([...open, name])) urls.push(loc);
    else if (!closes && open.length === 0) begin(name);
    if (name === undefined || closes) continue;
    if (open.length > DEEPEST) throw new UnusableList(BROKEN);
    if (!empty) open.push(name);
    loc = "";
  }
  if (open.length > 0) throw new UnusableList(BROKEN);
  // A space would begin an expectation.
  return urls.map((url) => url.trim().replace(/\s+/g, "%20")).filter((url) => url !== "");
}

function begin(root) {
  const name = root.replace(/^.*:/, "");
  if (name === "sitemapindex") {
    throw new UnusableList("This is an index of sitemaps, which lists no pages. Give the sitemaps themselves, one at a time.");
  }
  if (name !== "urlset") throw new UnusableList(BROKEN);
}

/** Whether the names of open elements are those of a page's URL, and not of a picture's. */
function isLoc([root, url, loc, ...more]) {
  const prefix = root.slice(0, -"urlset".length);
  return url === `${prefix}url` && loc === `${prefix}loc` && more.length === 0;
}

/** The tags of an XML text, {name, closes, empty}, and the text between them, {words}. */
function* partsOf(text) {
  // The policy of the page (Trusted Types) forbids the parser of the browser.
  for (let at = 0; at < text.length; ) {
    if (text[at] !== "<") {
      const end = text.indexOf("<", at);
      yield { words: unescaped(text.slice(at, end < 0 ? text.length : end)) };
      at = end < 0 ? text.length : end;
      continue;
    }
    if (text.startsWith("<!DOCTYPE", at)) throw new UnusableList("This is not a sitemap: it has a document type.");
    const [start, end] = SECTIONS.find(([mark]) => text.startsWith(mark, at));
    const close = text.indexOf(end, at + start.length);
    if (close < 0) throw new UnusableList(BROKEN);
    const inner = text.slice(at + start.length, close);
    if (start === "<![CDATA[") yield { words: inner };
    else if (start === "</") yield { name: inner.trim(), closes: true };
    else if (start === "<") yield { name: inner.split(/[\s/]/, 1)[0], closes: false, empty: inner.endsWith("/") };
    at = close + end.length;
  }
}

function unescaped(text) {
  return text.replace(/&(amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-f]{1,6});/gi, (whole, name) => {
    if (name[0] !== "#") return ENTITIES[name] ?? whole;
    const point = name[1] === "x" ? parseInt(name.slice(2), 16) : Number(name.slice(1));
    return point <= 0x10ffff ? String.fromCodePoint(point) : whole;
  });
}
