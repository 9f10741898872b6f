import type { Asking, Client } from './index.js';

type Hook = (context: any) => Promise<void>;

/** Navigation hooks of crawlee. `maxWait` is 20 s, since crawlee's navigation timeout includes the wait. */
export function permitHooks(
  client: Client,
  options?: Asking & { maxWait?: number },
): { preNavigationHooks: [Hook]; postNavigationHooks: [Hook] };
