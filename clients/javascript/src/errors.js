/** A page that was not fetched. */
export class PermitError extends Error {
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}

/** The page may not be fetched: `reason`, and the `rule` of robots.txt and its `line` if one decided. */
export class Disallowed extends PermitError {
  constructor(message, { reason, rule, line }) {
    super(message);
    Object.assign(this, { reason, rule, line });
  }
}

/** No slot within `maxWait`: retry at `retryAt`, in `seconds`. `reason` is "pace", "busy", or the reason of a defer. */
export class Deferred extends PermitError {
  constructor(message, { seconds, reason }) {
    super(message);
    Object.assign(this, { seconds, reason, retryAt: new Date(Date.now() + seconds * 1000) });
  }
}

/** The service rejects the URL, the agent or another member of the question. */
export class NotUnderstood extends PermitError {}

/** The service is unavailable, so nothing is known about the page. */
export class ServiceUnavailable extends PermitError {}

/** What answers refuses the key, or is not a robots.txt decision service: the message says what to set. */
export class Misconfigured extends ServiceUnavailable {}

/** The error for an answer that permits nothing. `page` is a URL, or "3 pages". */
export function errorFor(page, service, answer) {
  switch (answer.kind) {
    case 'denied':
      return new Disallowed(`${page} may not be fetched, says ${service}: ${answer.sentence}`, answer);
    case 'later':
      return new Deferred(`${page} may not be fetched for ${shortened(answer.seconds)} s: ${because(service, answer)}`, answer);
    case 'invalid':
      return new NotUnderstood(`${service} rejects ${page}: ${answer.sentence}`);
    default: {
      const message = `There is no verdict on ${page}: ${service} ${answer.sentence}`;
      return answer.set === undefined ? new ServiceUnavailable(message) : new Misconfigured(`${message} ${answer.set}`.trimEnd());
    }
  }
}

/** Why a page has to wait, as a sentence. */
export function because(service, { reason, sentence }) {
  if (reason === 'busy') return `${service} ${sentence}`;
  return `${service} says: ${sentence}`;
}

export const shortened = (seconds) => Math.round(seconds * 1000) / 1000;
