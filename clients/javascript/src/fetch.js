import { PermitError } from './errors.js';
import { askedSignature, signRequest } from './signatures.js';

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MOST_REDIRECTS = 20;
/** What a redirect to another origin must not carry. */
const CREDENTIALS = ['authorization', 'cookie', 'proxy-authorization'];

/**
 * A fetch that requests a permit of the client before every request, redirects included, and waits for its slot.
 *
 * `agent` is the crawler to ask as, by default the client's. It, or the first of several, is also sent as User-Agent unless the
 * request has one. With `sign`, the service signs GET requests, which then have the User-Agent and From of the agent's profile;
 * with `sign: 'asked'`, it signs those whose page answers 401, 403 or 429 with Accept-Signature, which are sent once more.
 * Other options are those of `client.permit`.
 */
export function permittedFetch(client, { agent, fetch = globalThis.fetch, sign, ...how } = {}) {
  const whenAsked = sign === 'asked';

  async function send(request, permit) {
    permit.sign(request.method, request.headers);
    const response = await fetch(new Request(request, { redirect: 'manual' }));
    await permit.report(response.status, response.headers.get('retry-after'), response.headers.get('crawler-price'));
    return response;
  }

  /** The permit by which a page is fetched once more, signed as it asks; null, without a slot, if it cannot be. */
  async function signedPermit(url, options, acceptSignature) {
    try {
      const permit = await client.permit(url, { ...options, acceptSignature });
      if (permit.signed !== null) return permit;
      await permit.release();
    } catch (error) {
      if (!(error instanceof PermitError)) throw error;
    }
    return null;
  }

  return async function permitted(input, init = {}) {
    let request = new Request(input, init);
    if (agent !== undefined && !request.headers.has('user-agent')) request.headers.set('user-agent', [agent].flat()[0]);
    const follows = request.redirect;
    for (let hops = 0; ; hops += 1) {
      const again = request.body === null ? request.clone() : null;
      const options = { ...how, agent, sign: whenAsked ? false : sign, signal: request.signal };
      if (whenAsked) signRequest(request.method, request.headers, null); // a redirect carries those of the page before
      let response = await send(request, await client.permit(request.url, options));
      const asked = whenAsked ? askedSignature(request.method, response) : null;
      const permit = asked === null ? null : await signedPermit(request.url, options, asked);
      if (permit !== null) {
        await response.body?.cancel();
        response = await send(request, permit);
      }
      const location = response.headers.get('location');
      if (!REDIRECTS.has(response.status) || location === null || follows === 'manual') return response;
      await response.body?.cancel();
      if (follows === 'error') throw new TypeError(`${request.url} redirects, and redirect is "error"`);
      if (hops === MOST_REDIRECTS) throw new TypeError(`${request.url} is behind more than ${MOST_REDIRECTS} redirects`);
      request = next(request, again, response.status, new URL(location, request.url));
    }
  };
}

function next(request, again, status, url) {
  const { method } = request;
  const becomesGet = (status === 303 && method !== 'HEAD') || (status < 303 && method === 'POST');
  if (!becomesGet && again === null) throw new TypeError(`${request.url} redirects a body, which cannot be sent again`);
  if (!['http:', 'https:'].includes(url.protocol)) throw new TypeError(`${request.url} redirects to ${url.protocol}`);
  const headers = new Headers(request.headers);
  if (url.origin !== new URL(request.url).origin) CREDENTIALS.forEach((name) => headers.delete(name));
  if (becomesGet) ['content-type', 'content-length', 'content-encoding'].forEach((name) => headers.delete(name));
  return new Request(url, { method: becomesGet ? 'GET' : method, headers, signal: request.signal });
}
