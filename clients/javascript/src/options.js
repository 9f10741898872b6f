import { randomBytes } from 'node:crypto';

import { checkedSeconds } from './question.js';

const KEY = /^[!-~]{1,512}$/;
const CALLER = /^[A-Za-z0-9._@-]{1,64}$/;

/** The caller of all clients of this process that name none: slots are shared fairly between names, and a name keeps its turn. */
const PROCESS = `process-${randomBytes(6).toString('hex')}`;

/** Standard error, since crawlers write results to standard output. */
const STDERR = { info: (line) => process.stderr.write(`${line}\n`), warn: (line) => process.stderr.write(`${line}\n`) };

/** The URL of the service without a slash at its end. */
export function checkedService(service) {
  const url = URL.canParse(service) ? new URL(service) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash) {
    throw new TypeError(`Invalid service URL ${JSON.stringify(service)}: use http:// or https://, and no query`);
  }
  return url.href.replace(/\/+$/, '');
}

/** The options of a client with defaults; `how` has those of `asking`. Throws TypeError for invalid ones. */
export function checkedOptions(options = {}) {
  const { key, caller = PROCESS, maxWait = 60, unreachable = 'fail', sign = false, fetch = globalThis.fetch, log = STDERR, ...how } = options;
  if (key !== undefined && !KEY.test(key)) throw new TypeError('malformed API key: use printable ASCII without spaces');
  if (!CALLER.test(caller)) {
    throw new TypeError(`Invalid caller ${JSON.stringify(caller)}: use 1 to 64 letters, digits, '.', '_', '@' and '-'`);
  }
  if (typeof sign !== 'boolean') throw new TypeError(`sign=${JSON.stringify(sign)} is not true or false`);
  if (!['fail', 'wait', 'allow'].includes(unreachable)) {
    throw new TypeError(`unreachable=${JSON.stringify(unreachable)} is not one of 'fail', 'wait' and 'allow'`);
  }
  if (typeof log?.info !== 'function' || typeof log.warn !== 'function') throw new TypeError('log has no info() and warn()');
  return { key, caller, maxWait: checkedSeconds('maxWait', maxWait), unreachable, sign, fetch, log, how };
}
