/** A page that was not fetched. */
export class PermitError extends Error {
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}

/** The page may not be fetched: `reason`, and the `rule` of robots.txt and its `line` if one decided. */
export class Disallowed extends PermitError {
  constructor(url, { reason, rule, line }) {
    super(`${url} may not be fetched: ${rule === null ? reason : `line ${line} of robots.txt: ${rule}`}.`);
    Object.assign(this, { reason, rule, line });
  }
}

/** No slot within `maxWait`: retry at `retryAt`, in `seconds`. `reason` is "pace", or the reason of a defer. */
export class Deferred extends PermitError {
  constructor(url, { seconds, reason }) {
    super(`${url} may not be fetched for ${seconds} s: ${reason}.`);
    Object.assign(this, { seconds, reason, retryAt: new Date(Date.now() + seconds * 1000) });
  }
}

/** The service rejects the URL or the agent as malformed. */
export class NotUnderstood extends PermitError {}

/** The service is unavailable, so nothing is known about the page. */
export class ServiceUnavailable extends PermitError {}

/** The error for an answer that permits nothing. */
export function errorFor(url, answer) {
  switch (answer.kind) {
    case 'denied':
      return new Disallowed(url, answer);
    case 'later':
      return new Deferred(url, answer);
    case 'invalid':
      return new NotUnderstood(`The service rejects ${url}: ${answer.why}.`);
    default:
      return new ServiceUnavailable(`There is no verdict on ${url}: ${answer.why}.`);
  }
}
