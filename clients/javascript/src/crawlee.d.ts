import type { Asking, Client } from './index.js';

type Hook = (context: any) => Promise<void>;

/** Navigation hooks of crawlee. A page whose slot is later than `maxWait`, 5 s, waits in crawlee's queue. */
export function permitHooks(
  client: Client,
  options?: Asking & { maxWait?: number },
): { preNavigationHooks: [Hook]; postNavigationHooks: [Hook] };
