export { Client } from './client.js';
export { Deferred, Disallowed, NotUnderstood, PermitError, ServiceUnavailable } from './errors.js';
export { permittedFetch } from './fetch.js';
