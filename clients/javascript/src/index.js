export { Client } from './client.js';
export { Deferred, Disallowed, Misconfigured, NotUnderstood, PermitError, ServiceUnavailable } from './errors.js';
export { permittedFetch } from './fetch.js';
