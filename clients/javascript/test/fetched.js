/** A crawl by `permittedFetch`, in its own process: `node fetched.js PLAN`, which prints what failed. */

import { Client, PermitError, permittedFetch } from 'robots-decisions';

const { service, urls, client: asked } = JSON.parse(process.argv[2]);
const failed = [];
const client = new Client(service, { agent: 'ExampleBot', ...asked });
const permitted = permittedFetch(client);
await Promise.all(
  urls.map((url) =>
    permitted(url).catch((error) => {
      if (!(error instanceof PermitError)) throw error;
      failed.push([url, error.message, error.name]);
    }),
  ),
);
await client.close();
console.log(JSON.stringify({ failed, misconfigured: null }));
