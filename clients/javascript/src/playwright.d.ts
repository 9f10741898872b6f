import type { Asking, Client } from './index.js';

/** Ask for each document of a page of Playwright or Puppeteer in Chromium; `error` is why the last one was refused. */
export function guard(
  page: any,
  client: Client,
  options?: Asking & { maxWait?: number },
): Promise<{ error: Error | null }>;
