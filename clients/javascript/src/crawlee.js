import { Disallowed, Misconfigured, NotUnderstood } from './errors.js';

const FINAL = [Disallowed, Misconfigured, NotUnderstood];

/**
 * Navigation hooks of crawlee that wait for a permit of the client before each page, and report what came.
 *
 * A disallowed page fails without retries. Redirects by HTTP need a permit each. A browser has followed them before they can be
 * asked about: then a page fails that a redirect to a disallowed one gave. Crawlee's navigation timeout includes the wait, so
 * `maxWait` is below it.
 */
export function permitHooks(client, { maxWait = 20, ...how } = {}) {
  /** By request: its last permit, and the URL that has it. */
  const permits = new WeakMap();

  async function wait(request, url) {
    try {
      permits.set(request, { url, permit: await client.permit(url, { ...how, maxWait }) });
    } catch (error) {
      if (FINAL.some((kind) => error instanceof kind)) request.noRetry = true;
      throw error;
    }
  }

  async function before({ request, page }, options) {
    await wait(request, request.url);
    if (page !== undefined || options === undefined) return;
    const redirected = async (next, response) => {
      await permits.get(request).permit.report(response.statusCode, response.headers['retry-after'] ?? null);
      await wait(request, String(next.url));
    };
    options.hooks = { ...options.hooks, beforeRedirect: [...(options.hooks?.beforeRedirect ?? []), redirected] };
  }

  async function after({ request, response }) {
    const last = permits.get(request);
    if (!last || !response) return;
    // got has properties; Playwright and Puppeteer have methods.
    const read = (name) => (typeof response[name] === 'function' ? response[name]() : response[name]);
    if (isOther(read('url'), last.url)) await wait(request, read('url'));
    const { permit } = permits.get(request);
    permits.delete(request);
    await permit.report(read('status') ?? read('statusCode'), read('headers')?.['retry-after'] ?? null);
  }

  return { preNavigationHooks: [before], postNavigationHooks: [after] };
}

function isOther(url, permitted) {
  if (!URL.canParse(url)) return false;
  const [one, other] = [new URL(url), new URL(permitted)];
  return one.origin + one.pathname + one.search !== other.origin + other.pathname + other.search;
}
