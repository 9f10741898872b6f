import { setTimeout as sleep } from 'node:timers/promises';

import { ANSWER_LIMIT, notHttp, notOurs, parseAnswer, parseItem, parseRefusal, parseVerdict, silent } from './answers.js';
import { Patience, conversation } from './conversation.js';
import { Deferred, NotUnderstood, errorFor, shortened } from './errors.js';
import { checkedOptions, checkedService } from './options.js';
import { Outcomes } from './outcomes.js';
import { LocalPace } from './pace.js';
import { asking, checkedSeconds, withoutCredentials } from './question.js';
import { BATCH_ITEMS, OUTCOME_TIMEOUT, answerTimeout, isUrgent, outcome, permitQuestion, query, question } from './requests.js';
import { signRequest } from './signatures.js';
import { Waits } from './waits.js';

/** Codes of Node.js for what answers, but not in HTTP, without TLS, or with a certificate that is not trusted; and for a port that fetch refuses. */
const OTHERS = /^(?:HPE_|ERR_SSL_|ERR_TLS_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|bad port$)/;

const monotonic = () => performance.now() / 1000;

/** A slot that has begun; `granted` is false if the service is silent and the page is fetched at the client's own pace. */
class Permit {
  #client;
  #grant;
  #url;
  #sign;
  #begun = monotonic();

  constructor(client, grant, { interval, version, signed = null }, url, sign) {
    this.#sign = sign;
    this.#url = url;
    this.#client = client;
    this.#grant = grant;
    this.granted = grant !== null;
    this.interval = interval;
    this.version = version;
    this.signed = signed;
  }

  /** Sign a request of the page in its Headers: delete what is of the page before, and set the fields. Does so only if `sign` was asked. */
  sign(method, headers) {
    if (this.#sign) signRequest(method, headers, this.signed);
  }

  /** Report the status of the page, its Retry-After header and the crawler-price of a 402: at once if the fleet has to know, else with others. */
  async report(status, retryAfter = null, price = null) {
    if (this.#grant === null) return;
    const elapsed = monotonic() - this.#begun;
    if (isUrgent(this.#grant, status)) {
      await this.#client._outcome(this.#grant, outcome(status, retryAfter, elapsed, price, withoutCredentials(this.#url)));
    } else this.#client._later({ permit: this.#grant.permit, ...outcome(status, null, elapsed) });
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
  #asking;
  #waits;
  #pace = new LocalPace();
  #outcomes = new Outcomes(async (message) => {
    const response = await this.#request('POST', '/v1/permits/outcomes', JSON.stringify(message), OUTCOME_TIMEOUT);
    return response.status === 200;
  });

  constructor(service, options) {
    this.#service = checkedService(service);
    this.#options = checkedOptions(options);
    this.#asking = asking(this.#options.how);
    this.#waits = new Waits(this.#service, this.#options.log, this.#options.unreachable === 'allow');
  }

  /** The verdict on a page. It reserves no slot. */
  async allowed(url, { signal, explain = false, ...how } = {}) {
    const members = this.#members(url, how);
    const answer = await this.#converse(url, this.#options.maxWait, signal, async (left) => {
      const asked = query({ ...question(url, members, left), ...(explain ? { explain } : {}) });
      const response = await this.#request('GET', `/v1/allowed?${asked}`, undefined, answerTimeout(left), signal);
      return 'kind' in response ? response : parseVerdict(url, members.agent, response);
    });
    if (answer.kind === 'verdict') return answer.verdict;
    throw errorFor(url, this.#service, answer);
  }

  /** The verdicts on any number of pages, in their order. A question without a verdict fails alone. */
  async *batch(questions, { signal } = {}) {
    if (typeof questions === 'string') throw new TypeError(`${JSON.stringify(questions)} is one text: pass a list of them`);
    let batch = [];
    for await (const one of questions) {
      const [first, agent] = Array.isArray(one) ? one : [one];
      const { url, ...how } = typeof first === 'string' ? { url: first, agent } : first;
      batch.push({ url, members: this.#members(url, how) });
      if (batch.length >= BATCH_ITEMS) {
        yield* this.#answers(batch, signal);
        batch = [];
      }
    }
    if (batch.length) yield* this.#answers(batch, signal);
  }

  /** Wait for the slot of a page. With the Accept-Signature of a response of it, the request is signed as the page asks. */
  async permit(url, { maxWait = this.#options.maxWait, sign = this.#options.sign, acceptSignature, signal, ...how } = {}) {
    const members = this.#members(url, how);
    if (members.as_of !== undefined) throw new TypeError('a permit is for now: asOf is for verdicts');
    const { caller, unreachable } = this.#options;
    const ends = monotonic() + checkedSeconds('maxWait', maxWait);
    const answer = await this.#converse(url, maxWait, signal, async (left) => {
      const content = JSON.stringify(permitQuestion(url, members, left, caller, sign, acceptSignature));
      const response = await this.#request('POST', '/v1/permits', content, answerTimeout(left), signal);
      return 'kind' in response ? response : parseAnswer(response, Date.now() / 1000);
    });
    if (answer.kind === 'granted') {
      this.#pace.learn(url, answer.interval, monotonic());
      return new Permit(this, answer, answer, url, sign || acceptSignature !== undefined);
    }
    if (answer.kind === 'none' && answer.set === undefined && unreachable === 'allow') {
      return this.#open(url, answer, ends - monotonic(), signal, sign);
    }
    throw errorFor(url, this.#service, answer);
  }

  /** Send the outcomes that wait for others. */
  async close() {
    await this.#outcomes.flush();
  }

  _later(item) {
    this.#outcomes.add(item);
  }

  async _outcome(grant, message) {
    const path = `/v1/permits/${encodeURIComponent(grant.permit)}/outcome`;
    await this.#request('POST', path, JSON.stringify(message), OUTCOME_TIMEOUT); // a lost outcome is lost
  }

  #members(url, how) {
    const members = asking(how, this.#asking);
    if (members.agent === undefined) throw new NotUnderstood(`${url} has no agent: set the client's \`agent\`.`);
    return members;
  }

  /** Wait for the client's own slot while the service is silent. */
  async #open(url, answer, left, signal, sign) {
    this.#waits.open(answer);
    const { wait, interval, giveBack } = this.#pace.take(url, monotonic(), Math.max(left, 0));
    if (giveBack === null) {
      const why = `${this.#service} ${answer.sentence} Without it, pages of a site are ${interval} s apart.`;
      throw new Deferred(`${url} may not be fetched for ${shortened(wait)} s: ${why}`, { seconds: wait, reason: 'pace' });
    }
    await slept(wait, signal, giveBack);
    return new Permit(this, null, { interval, version: null }, url, sign);
  }

  async #converse(url, maxWait, signal, ask) {
    const steps = conversation(maxWait, this.#options.unreachable === 'wait', monotonic);
    let step = steps.next();
    while (!step.done) {
      if (step.value.ask !== undefined) {
        const answer = await ask(step.value.ask);
        if (signal?.aborted) {
          if (answer.kind === 'granted') await this._outcome(answer, { released: true });
          signal.throwIfAborted();
        }
        this.#waits.heard(url, answer);
        step = steps.next(answer);
      } else {
        const { sleep: seconds, holding, because } = step.value;
        const counted = because === undefined ? null : this.#waits.count(url, because);
        try {
          await slept(seconds, signal, () => holding && this._outcome(holding, { released: true }));
        } finally {
          counted?.();
        }
        step = steps.next();
      }
    }
    return step.value;
  }

  /** The whole response, or the answer {kind: 'none'} that says why there is none. */
  async #request(method, path, content, seconds, signal) {
    const signals = [AbortSignal.timeout(Math.ceil(seconds * 1000)), signal];
    try {
      const response = await this.#send(method, path, content, 'application/json', signals);
      return await whole(response);
    } catch (error) {
      return failure(error, seconds);
    }
  }

  /** The answers to questions; while the service is silent or busy, those that are left are asked again. */
  async *#answers(batch, signal) {
    const { maxWait, unreachable } = this.#options;
    let [asked, patience] = [0, null];
    const begun = () => new Patience(maxWait, unreachable === 'wait', monotonic);
    while (asked < batch.length) {
      patience ??= begun();
      const rest = batch.slice(asked);
      let answer = null;
      for await (answer of this.#lines(rest, signal)) {
        if (answer.kind !== 'verdict') break;
        this.#waits.heard(batch[asked].url, answer);
        asked += 1;
        patience = null;
        yield answer.verdict;
      }
      if (asked === batch.length && answer.set === undefined) return;
      signal?.throwIfAborted();
      this.#waits.heard(rest[0].url, answer);
      patience ??= begun(); // since the last answer
      const seconds = patience.after(answer);
      if (seconds === null) throw errorFor(pages(Math.max(batch.length - asked, 1)), this.#service, answer);
      const counted = this.#waits.count(rest[0].url, answer);
      await slept(seconds, signal, () => {}).finally(counted);
    }
  }

  /** What each line of an answer means; the last one may say why there are no more. */
  async *#lines(batch, signal) {
    const timeout = answerTimeout(this.#options.maxWait);
    const content = batch.map(({ url, members }) => `${JSON.stringify(question(url, members, timeout))}\n`).join('');
    const silence = new Silence(timeout);
    let answered = 0;
    try {
      const signals = [silence.signal, signal];
      const response = await silence.until(this.#send('POST', '/v1/allowed', content, 'application/x-ndjson', signals));
      if (response.status !== 200) {
        const refusal = await silence.until(whole(response));
        yield 'kind' in refusal ? refusal : parseRefusal(refusal);
        return;
      }
      for await (const [line, ended] of splitLines(response.body, silence)) {
        if (answered === batch.length || line.length > ANSWER_LIMIT) {
          yield notOurs(answered === batch.length ? 'more answers than questions' : `more than ${ANSWER_LIMIT} characters in a line`);
          return;
        }
        if (!ended && answered) break; // cut off between two pieces
        const { url, members } = batch[answered++];
        yield parseItem(url, members.agent, line);
      }
      if (answered < batch.length) yield silent(`leaves ${batch.length - answered} of ${batch.length} questions unanswered.`);
    } catch (error) {
      yield failure(error, timeout);
    } finally {
      silence.end();
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

/** Ends an exchange whose other side is silent for so many seconds. */
class Silence {
  #abort = new AbortController();
  #seconds;

  constructor(seconds) {
    this.#seconds = seconds;
  }

  get signal() {
    return this.#abort.signal;
  }

  async until(promise) {
    const late = () => this.#abort.abort(new DOMException('silence', 'TimeoutError'));
    const timer = setTimeout(late, Math.ceil(this.#seconds * 1000));
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  end() {
    this.#abort.abort();
  }
}

/** The lines of a body, with whether they are ended; the last one may be longer than ANSWER_LIMIT. */
async function* splitLines(body, silence) {
  const [decoder, reader] = [new TextDecoder(), body.getReader()];
  let rest = '';
  for (let read = await silence.until(reader.read()); !read.done; read = await silence.until(reader.read())) {
    const lines = (rest + decoder.decode(read.value, { stream: true })).split('\n');
    rest = lines.pop();
    for (const line of lines) yield [line, true];
    if (rest.length > ANSWER_LIMIT) break;
  }
  if (rest) yield [rest, false];
}

async function whole(response) {
  const chunks = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > ANSWER_LIMIT) return notOurs(`more than ${ANSWER_LIMIT} bytes`);
    chunks.push(chunk);
  }
  return { status: response.status, headers: response.headers, body: Buffer.concat(chunks).toString() };
}

/** Sleep; if it is aborted, `instead` is done before. */
async function slept(seconds, signal, instead) {
  try {
    await sleep(Math.ceil(seconds * 1000) + 1, undefined, { signal }); // timers may be a millisecond early
  } catch (error) {
    await instead();
    throw signal?.reason ?? error;
  }
}

function failure(error, seconds) {
  if (error.name === 'TimeoutError') return silent(`does not respond within ${shortened(seconds)} s.`);
  const cause = String(error.cause?.message || error.cause?.code || error.message).slice(0, 300);
  if (OTHERS.test(error.cause?.code ?? cause)) return notHttp(cause);
  return silent(`cannot be reached: ${cause}.`);
}

const pages = (count) => (count === 1 ? '1 page' : `${count} pages`);
