/** How to ask about pages. What is left out is the client's, and else the service's default. */
export interface Asking {
  /** The crawler to ask as; of several, the first that robots.txt names counts. */
  agent?: string | readonly string[];
  /** What the page is wanted for. */
  purpose?: Purpose | readonly Purpose[];
  /** Whether a page whose site refuses a purpose is disallowed: false, unless the service enforces purposes. */
  enforce?: boolean;
  /** How robots.txt is read: rfc9309, google and others. By default as the crawler does. */
  dialect?: string;
  /** Seconds: how old a copy of robots.txt may be. */
  maxAge?: number;
}

export type Purpose = 'search' | 'ai-input' | 'ai-train';

/** What also verdicts take: an instant in the past, as a Date or as 2026-11-21T18:30:00Z, to be decided for. */
export interface AskingPast extends Asking {
  asOf?: Date | string;
}

export interface ClientOptions extends Asking {
  /** The API key. */
  key?: string;
  /** Who shares an origin's slots fairly with others: by default a name of this process. */
  caller?: string;
  /** Seconds to wait for a slot, or for a service that is busy: 60. */
  maxWait?: number;
  /**
   * While the service is silent: fail (the default), wait up to `maxWait`, or allow pages without a permit, at most one a second
   * from a site. It is silent if it cannot be reached, does not respond in time, or answers 5xx.
   */
  unreachable?: 'fail' | 'wait' | 'allow';
  /** Whether the service signs the requests of pages, if it can (Web Bot Auth): false. `permittedFetch` and the hooks send them so. */
  sign?: boolean;
  /** What sends the requests to the service. */
  fetch?: typeof fetch;
  /** Where it says why calls wait: by default standard error. */
  log?: { info(line: string): void; warn(line: string): void };
}

export interface VerdictOptions extends AskingPast {
  /** Add details to `members.explanation`. */
  explain?: boolean;
  signal?: AbortSignal;
}

export interface PermitOptions extends Asking {
  maxWait?: number;
  sign?: boolean;
  /** The Accept-Signature of a response of the page: `signed` is as the page asks. */
  acceptSignature?: string;
  signal?: AbortSignal;
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
  /** The service's own sentence. */
  summary: string;
  /** Seconds from one document to the next. */
  interval: number | null;
  /** When to ask again after a defer. */
  retryAt: Date | null;
  /** The id of the bytes of robots.txt, if the service gives it. */
  version: string | null;
  members: Record<string, unknown>;
}

/** A question of a batch that has no verdict: `why`, and the `status` of the problem. */
export interface Unanswered {
  url: string;
  agent: string;
  allowed: false;
  status: number;
  why: string;
  /** Seconds after which to ask again. */
  retryAfter: number | null;
}

/** A slot that has begun; `granted` is false if the service is silent and the page is fetched at the client's own pace. */
export interface Permit {
  readonly granted: boolean;
  /** Seconds until the next slot. */
  readonly interval: number;
  /** The id of the bytes of robots.txt, if the service gives it. */
  readonly version: string | null;
  /**
   * The header fields by which the service signed a GET of the page, by lower-case name, or null. They replace those of the
   * request, User-Agent and From included, and must not go to another URL.
   */
  readonly signed: Readonly<Record<string, string>> | null;
  /**
   * Sign a request of the page in its headers: delete what is of the page before, and set the fields. It does nothing unless `sign`
   * was asked for.
   */
  sign(method: string, headers: Pick<Headers, 'delete' | 'set'>): void;
  /** Report the status of the page, and its Retry-After header: at once if the fleet has to know, else with others. */
  report(status: number, retryAfter?: string | null, price?: string | null): Promise<void>;
  /** Release the slot of a page that is not fetched. */
  release(): Promise<void>;
}

type Questions = string | readonly [url: string, agent: string] | ({ url: string } & AskingPast);

/** Asks the service at a URL. Throws PermitError, and TypeError for invalid arguments. */
export class Client {
  constructor(service: string, options?: ClientOptions);
  /** The verdict on a page. It reserves no slot. */
  allowed(url: string, options?: VerdictOptions): Promise<Verdict>;
  /** The verdicts on any number of pages, in their order. */
  batch(
    questions: Iterable<Questions> | AsyncIterable<Questions>,
    options?: { signal?: AbortSignal },
  ): AsyncGenerator<Verdict | Unanswered, void, void>;
  /** Wait for the slot of a page. */
  permit(url: string, options?: PermitOptions): Promise<Permit>;
  /** Send the outcomes that wait for others, up to a second. */
  close(): Promise<void>;
}

/** A page that was not fetched. */
export class PermitError extends Error {}

/** The page may not be fetched. */
export class Disallowed extends PermitError {
  readonly reason: string;
  readonly rule: string | null;
  readonly line: number | null;
}

/** No slot within `maxWait`: retry at `retryAt`, in `seconds`. `reason` is "pace", "busy", or the reason of a defer. */
export class Deferred extends PermitError {
  readonly seconds: number;
  readonly reason: string;
  readonly retryAt: Date;
}

/** The service rejects the URL, the agent or another member of the question. */
export class NotUnderstood extends PermitError {}

/** The service is unavailable, so nothing is known about the page. */
export class ServiceUnavailable extends PermitError {}

/** What answers refuses the key, or is not a robots.txt decision service: the message says what to set. */
export class Misconfigured extends ServiceUnavailable {}

/**
 * A fetch that requests a permit before every request, redirects included, and waits for its slot. With `sign: 'asked'`, a GET whose
 * page answers 401, 403 or 429 with Accept-Signature is sent once more, signed as the page asks.
 */
export function permittedFetch(
  client: Client,
  options?: Asking & { maxWait?: number; sign?: boolean | 'asked'; fetch?: typeof fetch },
): typeof fetch;
