import { CheerioCrawler } from 'crawlee';
import { Client, Disallowed, permittedFetch, type Verdict } from 'robots-decisions';
import { permitHooks } from 'robots-decisions/crawlee';

const client = new Client('http://127.0.0.1:8080', { agent: 'ExampleBot', unreachable: 'wait' });
const verdict: Verdict = await client.allowed('http://h/');
for await (const answer of client.batch(['http://h/1', ['http://h/2', 'OtherBot']])) {
  console.log('why' in answer ? answer.why : answer.reason, verdict.line);
}
try {
  const response: Response = await permittedFetch(client)('http://h/');
  console.log(response.status);
} catch (error) {
  if (error instanceof Disallowed) console.log(error.rule?.length);
}
new CheerioCrawler({ ...permitHooks(client), requestHandler: async () => {} });
// @ts-expect-error: not one of the three
new Client('http://127.0.0.1:8080', { unreachable: 'open' });
