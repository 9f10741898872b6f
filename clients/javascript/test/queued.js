/** A crawl by crawlee whose queue is on disk, in its own process: `node queued.js PLAN`, which prints what came. */

import { CheerioCrawler, Configuration, RequestQueue, log } from 'crawlee';

import { Client } from 'robots-decisions';
import { permitHooks } from 'robots-decisions/crawlee';

const { service, storage, urls, key, client: asked, concurrency = 10, lockSecs, ...options } = JSON.parse(process.argv[2]);
log.setLevel(log.LEVELS.WARNING);
const [fetched, failed] = [[], []];
const configuration = new Configuration({ purgeOnStart: false, storageClientOptions: { localDataDirectory: storage } });
const client = new Client(service, { agent: 'ExampleBot', key, ...asked });
const hooks = permitHooks(client, options);
const requestQueue = await RequestQueue.open(null, { config: configuration });
const crawler = new CheerioCrawler(
  {
    ...hooks,
    requestQueue,
    retryOnBlocked: false,
    maxRequestRetries: 0,
    navigationTimeoutSecs: 30,
    requestHandlerTimeoutSecs: 10,
    minConcurrency: concurrency,
    maxConcurrency: concurrency,
    requestHandler: async ({ request }) => void fetched.push(request.url),
    failedRequestHandler: async ({ request }, error) => void failed.push([request.url, error.message, error.name]),
  },
  configuration,
);
if (lockSecs) requestQueue.requestLockSecs = lockSecs; // the crawler has set 60
await crawler.run(urls);
await client.close();
console.log(JSON.stringify({ fetched, failed, misconfigured: hooks.misconfigured?.message ?? null }));
