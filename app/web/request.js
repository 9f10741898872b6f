// How the page asks the service: without cookies, and not by what the browser has cached.

/** The request that sends `question` as JSON. */
export function posted(question) {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question) };
}

/** The response; rejects if there is none. */
export function request(path, init) {
  return fetch(path, { ...init, credentials: "omit", cache: "no-cache" });
}
