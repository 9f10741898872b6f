/** A crawl by crawlee whose queue is on disk, in its own process: `node queued.js PLAN`, which prints what came. */

import { CheerioCrawler, Configuration, RequestQueue, log } from 'crawlee';

import { Client } from 'robots-decisions';
import { permitHooks } from 'robots-decisions/crawlee';

const { service, storage, urls, key, maxWait, concurrency = 10 } = JSON.parse(process.argv[2]);
log.setLevel(log.LEVELS.ERROR);
const [fetched, failed] = [[], []];
const configuration = new Configuration({ purgeOnStart: false, storageClientOptions: { localDataDirectory: storage } });
const client = new Client(service, { agent: 'ExampleBot', key });
const crawler = new CheerioCrawler(
  {
    ...permitHooks(client, { maxWait }),
    requestQueue: await RequestQueue.open(null, { config: configuration }), // it locks requests for 60 s; the default one, 180 s
    retryOnBlocked: false,
    maxRequestRetries: 0,
    navigationTimeoutSecs: 10,
    requestHandlerTimeoutSecs: 10,
    minConcurrency: concurrency,
    maxConcurrency: concurrency,
    requestHandler: async ({ request }) => void fetched.push(request.url),
    failedRequestHandler: async ({ request }, error) => void failed.push([request.url, error.message]),
  },
  configuration,
);
await crawler.run(urls);
await client.close();
console.log(JSON.stringify({ fetched, failed }));
