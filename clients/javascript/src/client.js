import { setTimeout as sleep } from 'node:timers/promises';

import { NotUnderstood, ServiceUnavailable, errorFor } from './errors.js';
import {
  ANSWER_LIMIT,
  ANSWER_TIMEOUT,
  BATCH_ITEMS,
  FETCH_WAIT,
  OUTCOME_TIMEOUT,
  checkedOptions,
  checkedSeconds,
  checkedService,
  conversation,
  outcome,
  parseAnswer,
  parseItem,
  parseVerdict,
  question,
  toReport,
  withoutCredentials,
} from './protocol.js';

const monotonic = () => performance.now() / 1000;

/** A slot that has begun; `granted` is false if the service was unavailable and the page is fetched without one. */
class Permit {
  #client;
  #grant;
  #begun = monotonic();

  constructor(client, grant) {
    this.#client = client;
    this.#grant = grant;
    this.granted = grant !== null;
    this.interval = grant?.interval ?? 0;
  }

  /** Report the status of the page, and its Retry-After header, if the service wants to know. */
  async report(status, retryAfter = null) {
    if (this.#grant === null || !toReport(this.#grant, status)) return;
    await this.#client._outcome(this.#grant, outcome(status, retryAfter, monotonic() - this.#begun));
  }

  /** Release the slot of a page that is not fetched. */
  async release() {
    if (this.#grant !== null) await this.#client._outcome(this.#grant, { released: true });
  }
}

/** Asks the service. Throws PermitError, and TypeError for invalid arguments. */
export class Client {
  #service;
  #options;

  constructor(service, options) {
    this.#service = checkedService(service);
    this.#options = checkedOptions(options);
  }

  /** The verdict on a page. It reserves no slot. */
  async allowed(url, { agent, signal } = {}) {
    const asked = this.#agent(url, agent);
    const query = new URLSearchParams({ url: withoutCredentials(url), agent: asked, wait: FETCH_WAIT });
    const answer = await this.#converse(this.#options.maxWait, signal, async () => {
      const response = await this.#request('GET', `/v1/allowed?${query}`, undefined, ANSWER_TIMEOUT, signal);
      return typeof response === 'string'
        ? { kind: 'none', why: response }
        : parseVerdict(url, asked, response.status, response.headers, response.body);
    });
    if (answer.kind === 'verdict') return answer.verdict;
    throw errorFor(url, answer);
  }

  /** The verdicts on any number of pages, in their order. A question without a verdict fails alone. */
  async *batch(questions, { signal } = {}) {
    let batch = [];
    for await (const one of questions) {
      const [url, agent] = typeof one === 'string' ? [one] : one;
      batch.push([url, this.#agent(url, agent)]);
      if (batch.length >= BATCH_ITEMS) {
        yield* this.#answers(batch, signal);
        batch = [];
      }
    }
    if (batch.length) yield* this.#answers(batch, signal);
  }

  /** Wait for the slot of a page. */
  async permit(url, { agent, maxWait = this.#options.maxWait, signal } = {}) {
    const asked = this.#agent(url, agent);
    const { caller, unreachable } = this.#options;
    const answer = await this.#converse(checkedSeconds(maxWait), signal, async (left) => {
      const content = JSON.stringify(question(url, asked, left, caller));
      const response = await this.#request('POST', '/v1/permits', content, ANSWER_TIMEOUT, signal);
      return typeof response === 'string'
        ? { kind: 'none', why: response }
        : parseAnswer(response.status, response.headers, response.body, Date.now() / 1000);
    });
    if (answer.kind === 'granted') return new Permit(this, answer);
    if (answer.kind === 'none' && unreachable === 'allow') {
      process.emitWarning(`fetching ${url} without a permit: ${answer.why}`, 'RobotsDecisions');
      return new Permit(this, null);
    }
    throw errorFor(url, answer);
  }

  async _outcome(grant, message) {
    const path = `/v1/permits/${encodeURIComponent(grant.permit)}/outcome`;
    await this.#request('POST', path, JSON.stringify(message), OUTCOME_TIMEOUT); // a lost outcome is lost
  }

  #agent(url, agent = this.#options.agent) {
    if (!agent?.trim()) throw new NotUnderstood(`${url} has no agent: set the client's \`agent\`.`);
    return agent;
  }

  async #converse(maxWait, signal, ask) {
    const steps = conversation(maxWait, this.#options.unreachable === 'wait', monotonic);
    let step = steps.next();
    while (!step.done) {
      if (step.value.ask !== undefined) {
        const answer = await ask(step.value.ask);
        if (signal?.aborted) {
          if (answer.kind === 'granted') await this._outcome(answer, { released: true });
          signal.throwIfAborted();
        }
        step = steps.next(answer);
      } else {
        try {
          await sleep(Math.ceil(step.value.sleep * 1000) + 1, undefined, { signal }); // timers may be a millisecond early
        } catch (error) {
          if (step.value.holding) await this._outcome(step.value.holding, { released: true });
          throw signal?.reason ?? error;
        }
        step = steps.next();
      }
    }
    return step.value;
  }

  /** The whole response, or why there is none. */
  async #request(method, path, content, timeout, signal) {
    try {
      const response = await this.#send(method, path, content, 'application/json', [AbortSignal.timeout(timeout), signal]);
      const chunks = [];
      let length = 0;
      for await (const chunk of response.body ?? []) {
        length += chunk.length;
        if (length > ANSWER_LIMIT) return `its answer is longer than ${ANSWER_LIMIT} bytes`;
        chunks.push(chunk);
      }
      return { status: response.status, headers: response.headers, body: Buffer.concat(chunks).toString() };
    } catch (error) {
      return why(error);
    }
  }

  async *#answers(batch, signal) {
    const lines = batch.map(([url, agent]) => `${JSON.stringify({ url: withoutCredentials(url), agent, wait: FETCH_WAIT })}\n`);
    let answered = 0;
    try {
      const response = await this.#send('POST', '/v1/allowed', lines.join(''), 'application/x-ndjson', [signal]);
      if (response.status !== 200) throw new Error(`it answers ${response.status}`);
      for await (const line of splitLines(response.body)) {
        if (answered === batch.length) throw new Error('it has more answers than questions');
        yield parseItem(...batch[answered++], line);
      }
      if (answered < batch.length) throw new Error(`${batch.length - answered} answers are missing`);
    } catch (error) {
      signal?.throwIfAborted();
      throw new ServiceUnavailable(`There is no verdict on ${batch.length - answered} pages: ${why(error)}.`);
    }
  }

  #send(method, path, content, type, signals) {
    const { key, fetch } = this.#options;
    return fetch(this.#service + path, {
      method,
      body: content,
      redirect: 'manual',
      signal: AbortSignal.any(signals.filter(Boolean)),
      headers: {
        accept: 'application/json, application/x-ndjson',
        ...(content === undefined ? {} : { 'content-type': type }),
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      },
    });
  }
}

async function* splitLines(body) {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop();
    if (rest.length > ANSWER_LIMIT) throw new Error(`a line of its answer is longer than ${ANSWER_LIMIT} characters`);
    yield* lines;
  }
}

function why(error) {
  if (error.name === 'TimeoutError') return 'it does not respond in time';
  return `it cannot be reached: ${error.cause?.message || error.cause?.code || error.message}`;
}
