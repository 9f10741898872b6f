import { Disallowed, Misconfigured, NotUnderstood } from './errors.js';

/**
 * Navigation hooks of crawlee that wait for a permit of the client before each page, and report what came.
 *
 * A disallowed page fails without retries. Crawlee's navigation timeout includes the wait, so `maxWait` is below it.
 */
export function permitHooks(client, { maxWait = 20, ...how } = {}) {
  const permits = new WeakMap();

  async function before({ request }) {
    try {
      permits.set(request, await client.permit(request.url, { ...how, maxWait }));
    } catch (error) {
      if (error instanceof Disallowed || error instanceof NotUnderstood || error instanceof Misconfigured) request.noRetry = true;
      throw error;
    }
  }

  async function after({ request, response }) {
    const permit = permits.get(request);
    if (!permit || !response) return;
    permits.delete(request);
    // got has properties; Playwright and Puppeteer have methods.
    const status = typeof response.status === 'function' ? response.status() : response.statusCode;
    const headers = typeof response.headers === 'function' ? response.headers() : response.headers;
    await permit.report(status, headers?.['retry-after'] ?? null);
  }

  return { preNavigationHooks: [before], postNavigationHooks: [after] };
}
