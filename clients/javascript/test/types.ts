import { CheerioCrawler } from 'crawlee';
import { Client, Disallowed, Misconfigured, permittedFetch, type Verdict } from 'robots-decisions';
import { permitHooks } from 'robots-decisions/crawlee';

const client = new Client('http://127.0.0.1:8080', { agent: 'ExampleBot', unreachable: 'wait' });
const verdict: Verdict = await client.allowed('http://h/');
for await (const answer of client.batch(['http://h/1', ['http://h/2', 'OtherBot'], { url: 'http://h/3', asOf: new Date(0) }])) {
  console.log('why' in answer ? answer.why : answer.reason, verdict.line);
}
try {
  const response: Response = await permittedFetch(client)('http://h/');
  console.log(response.status);
} catch (error) {
  if (error instanceof Misconfigured) throw error;
  if (error instanceof Disallowed) console.log(error.rule?.length);
}
new CheerioCrawler({ ...permitHooks(client), requestHandler: async () => {} });
console.log(verdict.version, (await client.permit('http://h/', { agent: ['NewsBot', 'ExampleBot'], purpose: 'ai-train' })).version);
// @ts-expect-error: a permit is for now
await client.permit('http://h/', { asOf: new Date(0) });
// @ts-expect-error: not one of the three
new Client('http://127.0.0.1:8080', { unreachable: 'open' });
