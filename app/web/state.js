// The link that reproduces the page. Its state is in the fragment, which browsers do not send: neither the service nor a
// log sees it.

const MARK = "#1=";
const LINK_LIMIT = 16_000;
const TEXT_LIMIT = 2_000_000;
const WHEN = /^\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\dZ$/;

/**
 * The fragment for a state, and what was left out of it: null, "file" if the link would be too long and names the site
 * instead, or "site" if there is no site to name either.
 */
export async function fragmentOf(state) {
  const whole = await encode(state);
  if (whole.length <= LINK_LIMIT) return { fragment: whole, left: null };
  const { robots, other, ...rest } = state;
  const left = state.site ? "file" : "site";
  const question = await encode(rest);
  if (question.length <= LINK_LIMIT) return { fragment: question, left };
  return { fragment: null, left: "question" };
}

/** Whether a fragment is a link to a state. */
export function isLink(fragment) {
  return fragment.startsWith(MARK);
}

/** The state in a fragment, or null. */
export async function stateOf(fragment) {
  if (!isLink(fragment) || fragment.length > 2 * LINK_LIMIT) return null;
  try {
    return checked(JSON.parse(await decode(fragment.slice(MARK.length))));
  } catch {
    return null;
  }
}

async function encode(state) {
  const packed = new Blob([JSON.stringify(state)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 8192) binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return MARK + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function decode(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const decoder = new TextDecoder();
  let unpacked = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return unpacked + decoder.decode();
    unpacked += decoder.decode(value, { stream: true });
    // Links are untrusted, and a short one can unpack to a thousand times its length.
    if (unpacked.length > TEXT_LIMIT) {
      await reader.cancel();
      throw new RangeError("the link unpacks to too much text");
    }
  }
}

/** The state, reduced to the members that this page writes; throws TypeError without a question. */
export function checked(state) {
  if (typeof state.urls !== "string" || typeof state.agents !== "string") throw new TypeError("the link has no question");
  const text = (value) => (typeof value === "string" ? value : "");
  const index = (value) => (Number.isSafeInteger(value) && value >= 0 ? value : 0);
  const list = (value) => (Array.isArray(value) ? value : []);
  return {
    site: text(state.site),
    robots: typeof state.robots === "string" ? state.robots : null,
    other: text(state.other),
    urls: state.urls,
    agents: state.agents,
    dialects: list(state.dialects).filter((name) => typeof name === "string"),
    purposes: list(state.purposes).filter((name) => typeof name === "string"),
    chosen: [index(list(state.chosen)[0]), index(list(state.chosen)[1])],
    side: index(state.side) > 0 ? 1 : 0,
    view: state.view === "service" ? "service" : "text",
    ...compared(state.fetched ?? null, state.earlier ?? null),
  };
}

/** The site and the selected earlier version; invalid instants are left out. */
function compared(fetched, earlier) {
  const text = (value) => typeof value === "string" && value !== "";
  const when = (value) => value === null || (typeof value === "string" && WHEN.test(value));
  if (!text(fetched?.url) || !when(fetched.at)) return { fetched: null, earlier: null };
  const site = { url: fetched.url, at: fetched.at, file: fetched.file === true, cut: fetched.cut === true };
  const { id, from, reader } = earlier ?? {};
  if (!text(id) || !text(from)) return { fetched: site, earlier: null };
  return { fetched: site, earlier: { id, from, reader: text(reader) ? reader : "" } };
}
