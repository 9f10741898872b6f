// The two routes of the service that this page asks. URLs are relative, so the page works below any prefix.

/** What the service, or the way to it, has against a request; `parameter` says which value of it, where one is at fault. */
export class Trouble extends Error {
  constructor(detail, parameter = null) {
    super(detail);
    this.parameter = parameter;
  }
}

/** `POST v1/test`, explained; raises Trouble. */
export function judge(question, signal) {
  const body = JSON.stringify({ ...question, explain: true });
  return ask("v1/test", { method: "POST", headers: { "Content-Type": "application/json" }, body, signal });
}

/** `GET v1/robots`: the file that is held for the origin of `url`; raises Trouble. */
export function held(url, signal) {
  return ask(`v1/robots?url=${encodeURIComponent(url)}`, { signal });
}

async function ask(path, init) {
  let response;
  try {
    response = await fetch(path, { ...init, credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Trouble("The service did not answer.");
  }
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  throw new Trouble(answer?.detail ?? `The service answered ${response.status}.`, answer?.parameter ?? null);
}
