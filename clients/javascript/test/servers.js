/** A real service, a site to crawl, and a service with answers from the test. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

async function listen(handle) {
  const server = createServer(handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}

/** A site: its pages by path, as [status, headers] of each request in order; and `log`, the paths and instants. */
export async function site(robots, pages = {}) {
  const log = [];
  const server = await listen((request, response) => {
    const path = request.url;
    log.push({ path, at: Date.now(), headers: request.headers });
    if (path === '/robots.txt') return response.end(robots);
    const times = log.filter((one) => one.path === path).length;
    const [status, headers] = pages[path]?.[Math.min(times, pages[path].length) - 1] ?? [200, {}];
    response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(`<title>${path}</title>`);
  });
  return { ...server, log, paths: () => log.map(({ path }) => path) };
}

/** A service that gives these answers to questions, one after the other, the last one to all further ones; a function gives one. */
export async function double(...answers) {
  const asked = [];
  const reports = [];
  const server = await listen(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    if (request.url.endsWith('/outcome')) {
      reports.push({ path: request.url, ...JSON.parse(body) });
      return response.end('{"released": false, "backoff": null}');
    }
    if (request.url.endsWith('/outcomes')) return response.end('{"outcomes": []}');
    const next = answers[Math.min(asked.length, answers.length - 1)];
    asked.push({ path: request.url, headers: request.headers, body });
    const answer = typeof next === 'function' ? next(body) : next;
    if (answer === 'reset') return request.socket.destroy();
    const [status, said, headers] = Array.isArray(answer) ? answer : [200, answer, {}];
    response.writeHead(status, headers).end(typeof said === 'string' ? said : JSON.stringify(said));
  });
  return { ...server, asked, reports };
}

export const allow = (wait = 0, permit = 'cGVybWl0') => ({
  verdict: 'allow', allowed: true, reason: 'no_match', rule: null, permit, wait, interval: 1, retry_after: null,
});
export const defer = (seconds) => ({
  verdict: 'defer', allowed: false, reason: 'unreachable', rule: null, permit: null,
  retry_at: new Date(Date.now() + seconds * 1000).toISOString(),
});
export const disallow = () => ({
  verdict: 'disallow', allowed: false, reason: 'rule', rule: { directive: 'disallow', pattern: '/private/', line: 2 },
});

/** The service itself: the one at SERVICE_URL, or one as `make run` starts it. The sites are ports of one host. */
export async function service() {
  const { SERVICE_URL, REDIS_URL, MAKEFLAGS, MAKELEVEL, ...rest } = process.env;
  if (SERVICE_URL) return { url: SERVICE_URL, close: async () => {} };
  const settings = { PORT: '0', ALLOW_ADDRESSES: '127.0.0.0/8', ALLOW_PORTS: '*', PACE_BY: 'origin', PACE_FLOOR: '0.05' };
  const environment = { ...rest, ...settings };
  const child = spawn('make', ['--silent', 'run'], { cwd: ROOT, env: environment, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let [url, said] = [null, ''];
  await new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        said += `${line}\n`;
        url ??= /Uvicorn running on (http:\/\/\S+)/.exec(line)?.[1] ?? null;
        if (url && said.includes('Application startup complete')) resolve();
      });
    }
    child.once('exit', () => reject(new Error(said)));
  });
  const close = async () => {
    const ended = once(child, 'close');
    process.kill(-child.pid, 'SIGTERM');
    await ended;
  };
  return { url, close };
}

/** A fetch for a client, and the instants (ms) of the slots that it was granted, by URL. */
export function recording() {
  const slots = new Map();
  const record = async (url, init) => {
    const response = await fetch(url, init);
    if (String(url).endsWith('/v1/permits')) {
      const { go_at } = await response.clone().json();
      const page = JSON.parse(init.body).url;
      if (go_at) slots.set(page, [...(slots.get(page) ?? []), Date.parse(go_at)]);
    }
    return response;
  };
  /** The requests of a site that came before a slot of their own. */
  const early = (origin) =>
    origin.log.filter(({ path, at }, index) => {
      const before = origin.log.slice(0, index).filter((one) => one.path === path).length;
      return path !== '/robots.txt' && !(at >= slots.get(origin.url + path)?.[before] - TICK);
    });
  /** The shortest time between two slots. */
  const shortest = () => {
    const all = [...slots.values()].flat().sort((a, b) => a - b);
    return Math.min(...all.slice(1).map((at, index) => at - all[index]));
  };
  return { fetch: record, early, shortest };
}

/** Milliseconds by which slots may seem closer than they are: their instants are rounded. */
export const TICK = 2;
