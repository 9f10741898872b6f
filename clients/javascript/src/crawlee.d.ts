import type { Asking, Client, Misconfigured } from './index.js';

type Hook = (context: any) => Promise<void>;

/**
 * Navigation hooks of crawlee. A page whose slot is later than `maxWait`, 5 s, waits in crawlee's queue. The pages of a site fail
 * that stays deferred for more than `giveUpAfter`, 3600 s. `misconfigured` is the error that stopped the crawler.
 */
export function permitHooks(
  client: Client,
  options?: Asking & { maxWait?: number; giveUpAfter?: number },
): { preNavigationHooks: [Hook]; postNavigationHooks: [Hook]; readonly misconfigured: Misconfigured | null };
