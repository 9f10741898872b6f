import { Deferred, Disallowed, Misconfigured, NotUnderstood, PermitError } from './errors.js';
import { Lines, WAITS_FOR } from './lines.js';

const FINAL = [Disallowed, NotUnderstood];
/** Reasons of Deferred that say nothing about the verdict. */
const NOT_ABOUT_IT = ['pace', 'busy'];

/**
 * Navigation hooks of crawlee that wait for a permit of the client before each page, and report what came.
 *
 * A disallowed page fails without retries. A page whose slot is within `maxWait` seconds waits for it in the crawler. One whose
 * slot or verdict is later goes back to crawlee's queue until then, and so does one about which the service says nothing; that
 * counts as no retry. The pages of a site that stays deferred for more than `giveUpAfter` seconds fail with Deferred. If the service
 * refuses the key, or is none, the crawler stops, its requests stay in its queue, and `misconfigured` of the hooks says why.
 *
 * Redirects by HTTP need a permit each. A browser has followed them before they can be asked about: then a page fails that a
 * redirect to a disallowed one gave. A hook for sessions or proxies goes before these. With `sign`, pages and redirects by HTTP
 * are signed, and those of a browser are not.
 */
export function permitHooks(client, { maxWait = 5, giveUpAfter = 3600, ...how } = {}) {
  if (!(giveUpAfter >= 0)) throw new TypeError(`giveUpAfter=${giveUpAfter} is not a number of seconds`);
  /** By request: its last permit, and the URL that has it. */
  const permits = new WeakMap();
  const lines = new Lines(giveUpAfter);
  let misconfigured = null;

  /** `came`: the page has come, by a redirect that could not be asked about. */
  async function wait(context, url, came = false) {
    const { request } = context;
    const line = lines.of(url);
    failIfGivenUp(request, url, line);
    try {
      const permit = await client.permit(url, { ...how, maxWait, ...(context.page === undefined ? {} : { sign: false }) });
      lines.granted(line, permit.interval, maxWait);
      permits.set(request, { url, permit });
    } catch (error) {
      if (!(error instanceof PermitError)) throw error;
      if (FINAL.some((kind) => error instanceof kind)) {
        lines.known(line);
        request.noRetry = true;
      } else if (error instanceof Misconfigured) await stop(context, error);
      else {
        if (error instanceof Deferred && !NOT_ABOUT_IT.includes(error.reason)) {
          lines.deferred(line, error);
          failIfGivenUp(request, url, line);
        } else if (error.reason === 'pace') lines.turn(line, error.seconds);
        else lines.close(line, error.seconds);
        if (came && error.reason === 'pace') return; // it is allowed, and to fetch it again would only be another page
        if (came || url === request.url || ['GET', 'HEAD'].includes(request.method)) aside(context, line, came ? undefined : url);
      }
      throw error;
    }
  }

  function failIfGivenUp(request, url, line) {
    const last = lines.givenUp(line);
    if (!last) return;
    request.noRetry = true;
    throw new Deferred(`${url} is given up, since its site stays deferred for more than giveUpAfter, ${giveUpAfter} s: ${last.message}`, last);
  }

  function aside(context, line, url) {
    context.session = undefined; // it did nothing bad
    lines.putBack(context, line, url);
  }

  async function stop(context, error) {
    const { crawler } = context;
    aside(context, null);
    if (!misconfigured) crawler?.log.error(`${error.message} The crawler stops; its requests stay in its queue.`);
    misconfigured ??= error;
    crawler?.stop(error.message);
    await lines.giveBack();
  }

  async function before(context, options) {
    const { request, page, crawler } = context;
    lines.watch(crawler);
    const url = request.userData?.[WAITS_FOR] ?? request.url;
    const line = lines.of(url);
    if (!lines.enter(request, line)) {
      aside(context, line, url);
      throw new PermitError(`${request.url} waits for its slot.`);
    }
    try {
      await wait(context, url);
    } finally {
      lines.answered(line);
    }
    if (url !== request.url) {
      delete request.userData[WAITS_FOR];
      options.url = url; // it goes on behind the redirect
    }
    if (page !== undefined || options === undefined) return;
    options.headers = { ...request.headers, ...options.headers };
    permits.get(request).permit.sign(request.method, headersOf(options));
    const redirected = async (next, response) => {
      await permits.get(request).permit.report(response.statusCode, response.headers['retry-after'] ?? null);
      await wait(context, String(next.url));
      permits.get(request).permit.sign(next.method, headersOf(next));
    };
    options.hooks = { ...options.hooks, beforeRedirect: [...(options.hooks?.beforeRedirect ?? []), redirected] };
  }

  async function after(context) {
    const { request, response } = context;
    const last = permits.get(request);
    if (!last || !response) return;
    // got has properties; Playwright and Puppeteer have methods.
    const read = (name) => (typeof response[name] === 'function' ? response[name]() : response[name]);
    if (isOther(read('url'), last.url)) await wait(context, read('url'), true);
    const { permit } = permits.get(request);
    permits.delete(request);
    const headers = read('headers');
    await permit.report(read('status') ?? read('statusCode'), headers?.['retry-after'] ?? null, headers?.['crawler-price'] ?? null);
  }

  const hooks = { preNavigationHooks: [before], postNavigationHooks: [after] };
  // Not enumerable: crawlee refuses options that it does not know.
  return Object.defineProperty(hooks, 'misconfigured', { get: () => misconfigured });
}

/** The headers of a request of got as Headers change them; its names may be in any case, and what is undefined is not sent. */
function headersOf({ headers }) {
  const remove = (name) => Object.keys(headers).filter((key) => key.toLowerCase() === name).forEach((key) => (headers[key] = undefined));
  return { delete: remove, set: (name, value) => (remove(name), (headers[name] = value)) };
}

function isOther(url, permitted) {
  if (!URL.canParse(url)) return false;
  const [one, other] = [new URL(url), new URL(permitted)];
  return one.origin + one.pathname + one.search !== other.origin + other.pathname + other.search;
}
