export interface ClientOptions {
  /** The API key. */
  key?: string;
  /** The crawler to ask as, unless a call names another. */
  agent?: string;
  /** Who shares an origin's slots fairly with others: by default the id of the key, else the address. */
  caller?: string;
  /** Seconds to wait for a slot, or for a service that is busy: 60. */
  maxWait?: number;
  /** While the service cannot be reached: fail (the default), wait up to `maxWait`, or allow without a permit. */
  unreachable?: 'fail' | 'wait' | 'allow';
  /** What sends the requests to the service. */
  fetch?: typeof fetch;
}

export interface AskOptions {
  agent?: string;
  signal?: AbortSignal;
}

export interface PermitOptions extends AskOptions {
  maxWait?: number;
}

/** Whether a page may be fetched. `members` is the whole answer, as the HTTP API has it. */
export interface Verdict {
  url: string;
  agent: string;
  verdict: 'allow' | 'disallow' | 'defer';
  allowed: boolean;
  reason: string;
  /** The deciding line of robots.txt, and its number. */
  rule: string | null;
  line: number | null;
  /** Seconds from one document to the next. */
  interval: number | null;
  /** When to ask again after a defer. */
  retryAt: Date | null;
  members: Record<string, unknown>;
}

/** A question of a batch that has no verdict: `why`, and the `status` of the problem. */
export interface Unanswered {
  url: string;
  agent: string;
  allowed: false;
  status: number;
  why: string;
}

/** A slot that has begun; `granted` is false if the service was unavailable and the page is fetched without one. */
export interface Permit {
  readonly granted: boolean;
  readonly interval: number;
  /** Report the status of the page, and its Retry-After header, if the service wants to know. */
  report(status: number, retryAfter?: string | null): Promise<void>;
  /** Release the slot of a page that is not fetched. */
  release(): Promise<void>;
}

type Questions = string | readonly [url: string, agent: string];

/** Asks the service at a URL. Throws PermitError, and TypeError for invalid arguments. */
export class Client {
  constructor(service: string, options?: ClientOptions);
  /** The verdict on a page. It reserves no slot. */
  allowed(url: string, options?: AskOptions): Promise<Verdict>;
  /** The verdicts on any number of pages, in their order. */
  batch(
    questions: Iterable<Questions> | AsyncIterable<Questions>,
    options?: { signal?: AbortSignal },
  ): AsyncGenerator<Verdict | Unanswered, void, void>;
  /** Wait for the slot of a page. */
  permit(url: string, options?: PermitOptions): Promise<Permit>;
}

/** A page that was not fetched. */
export class PermitError extends Error {}

/** The page may not be fetched. */
export class Disallowed extends PermitError {
  readonly reason: string;
  readonly rule: string | null;
  readonly line: number | null;
}

/** No slot within `maxWait`: retry at `retryAt`, in `seconds`. `reason` is "pace", or the reason of a defer. */
export class Deferred extends PermitError {
  readonly seconds: number;
  readonly reason: string;
  readonly retryAt: Date;
}

/** The service rejects the URL or the agent as malformed. */
export class NotUnderstood extends PermitError {}

/** The service is unavailable, so nothing is known about the page. */
export class ServiceUnavailable extends PermitError {}

/** A fetch that requests a permit before every request, redirects included, and waits for its slot. */
export function permittedFetch(client: Client, options?: { agent?: string; fetch?: typeof fetch }): typeof fetch;
