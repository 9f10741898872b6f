/**
 * Verify signatures with packages that are not ours: node verify.js < {"directory", "messages"}. For each message, print an object
 * that has how many of its signatures hold, by the package's name.
 */

import { createHash } from 'node:crypto';
import { text } from 'node:stream/consumers';

import { verifySignature, webcrypto } from 'http-message-sig';
import { verify } from 'web-bot-auth';
import { verifierFromJWK } from 'web-bot-auth/crypto';

const PARAMETERS = ['created', 'expires', 'keyid', 'nonce', 'tag'];
const { directory, messages } = JSON.parse(await text(process.stdin));
const keys = JSON.parse(directory.body).keys;
const verifiers = new Map();
for (const key of keys) {
  const imported = await crypto.subtle.importKey('jwk', { kty: key.kty, crv: key.crv, x: key.x }, 'Ed25519', true, ['verify']);
  verifiers.set(key.kid, { strict: webcrypto.verifier(imported), early: await verifierFromJWK(key) });
}

async function holds(check) {
  try {
    await check();
    return 1;
  } catch {
    return 0;
  }
}

function fieldsOf(headers) {
  return Object.entries(headers).map(([name, value]) => ({ name, value }));
}

async function verifiedByHttpMessageSig(message, label, tag, requiredComponents, requiredParameters) {
  await verifySignature(message, {
    label,
    policy: {
      algorithms: ['ed25519'],
      requiredComponents,
      requiredParameters,
      validate: ({ parameters }) => parameters.tag === tag,
    },
    resolveVerifier: ({ parameters }) => verifiers.get(parameters.keyid).strict,
  });
}

const urlOf = ({ host, path }) => `https://${host}${path}`;

const requestVerifiers = {
  'http-message-sig': ({ method, headers, agent, ...where }) =>
    verifiedByHttpMessageSig(
      { kind: 'request', method, targetUri: urlOf(where), fields: fieldsOf(headers) },
      'sig1',
      'web-bot-auth',
      ['@authority', '@method', '@path', agent],
      PARAMETERS,
    ),
  'web-bot-auth': async ({ method, headers, ...where }) => {
    const [, keyid] = headers['Signature-Input'].match(/;keyid="([^"]*)"/);
    await verify(new Request(urlOf(where), { method, headers }), verifiers.get(keyid).early);
  },
};

/** Of a directory whose digest is another, none holds. */
async function directorySignatures({ headers, body, ...where }) {
  const digest = createHash('sha256').update(body).digest('base64');
  if (headers['Content-Digest'] !== `sha-256=:${digest}:`) return 0;
  const request = { kind: 'request', method: 'GET', targetUri: urlOf(where), fields: [] };
  const message = { kind: 'response', status: 200, fields: fieldsOf(headers), request };
  const components = [{ name: '@authority', parameters: { req: true } }, 'content-digest'];
  const parameters = PARAMETERS.filter((name) => name !== 'nonce');
  const tag = 'http-message-signatures-directory';
  const found = keys.map((_, number) =>
    holds(() => verifiedByHttpMessageSig(message, `binding${number}`, tag, components, parameters)),
  );
  return (await Promise.all(found)).reduce((one, other) => one + other);
}

const results = [];
for (const message of messages) {
  if (message.body !== undefined) results.push({ 'http-message-sig': await directorySignatures(message) });
  else {
    const checks = Object.entries(requestVerifiers).map(async ([name, check]) => [name, await holds(() => check(message))]);
    results.push(Object.fromEntries(await Promise.all(checks)));
  }
}
process.stdout.write(JSON.stringify(results));
