/** The header fields of a request that the service signed. */

/** Those of a signature. They hold for one request, and what follows redirects carries them to the next host. */
const FIELDS = ['signature-agent', 'signature-input', 'signature'];
/** Statuses of a page that may ask for a signature. */
const ASKING = new Set([401, 403, 429]);
const SENT_WITH_IT = new Set([...FIELDS, 'user-agent', 'from']);
const VALUE = /^[!-~](?:[ -~]{0,4094}[!-~])?$/;

/** The fields in the answer of a permit by lower-case name; null without a signature, or if it cannot be sent with a GET. */
export function signedOf({ signed }) {
  if (signed?.method !== 'GET' || typeof signed.headers !== 'object' || signed.headers === null) return null;
  const fields = Object.entries(signed.headers).map(([name, value]) => [name.toLowerCase(), value]);
  const valid = fields.every(([name, value]) => SENT_WITH_IT.has(name) && typeof value === 'string' && VALUE.test(value));
  const read = Object.fromEntries(fields);
  return valid && FIELDS.every((name) => name in read) ? read : null;
}

/** The Accept-Signature of a page that wants its GET to be signed (RFC 9421 5.1); null for other responses. */
export function askedSignature(method, { status, headers }) {
  return method === 'GET' && ASKING.has(status) ? headers.get('accept-signature') : null;
}

/**
 * Set the fields of a signature in place of those that the request has, which are of the page before. `headers` has delete() and
 * set(), as Headers do. A signature is of a GET; without one, the fields are deleted.
 */
export function signRequest(method, headers, signed) {
  FIELDS.forEach((name) => headers.delete(name));
  if (signed === null || method !== 'GET') return;
  Object.entries(signed).forEach(([name, value]) => headers.set(name, value));
}
