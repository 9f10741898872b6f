const DOCUMENTS = ['Request', 'Response'].map((requestStage) => ({
  urlPattern: 'http*',
  resourceType: 'Document',
  requestStage,
}));

/**
 * Ask for each document that a page of Playwright or Puppeteer and its frames request, before it is requested, redirects included.
 *
 * A document without a permit is not requested: `page.goto` fails with net::ERR_BLOCKED_BY_CLIENT, and `error` of what is returned
 * says why. Chromium alone shows redirects before they are followed. Other parts of a document are not asked about, and none is
 * signed.
 */
export async function guard(page, client, how = {}) {
  const session = await (page.createCDPSession ? page.createCDPSession() : page.context().newCDPSession(page));
  const guarding = { error: null };
  const permits = new Map();

  async function requests({ requestId, networkId, request }) {
    try {
      permits.set(networkId, await client.permit(request.url, { ...how, sign: false }));
    } catch (error) {
      guarding.error = error;
      await send('Fetch.failRequest', { requestId, errorReason: 'BlockedByClient' });
      return;
    }
    await send('Fetch.continueRequest', { requestId });
  }

  /** The response of a redirect comes before the request that it leads to. */
  async function answered({ requestId, networkId, responseStatusCode, responseHeaders = [] }) {
    const permit = permits.get(networkId);
    permits.delete(networkId);
    if (permit !== undefined && responseStatusCode !== undefined) {
      const field = (wanted) => responseHeaders.find(({ name }) => name.toLowerCase() === wanted)?.value ?? null;
      await permit.report(responseStatusCode, field('retry-after'), field('crawler-price'));
    }
    await send('Fetch.continueRequest', { requestId });
  }

  async function send(method, parameters) {
    // The page may be closed, or have left the request.
    await session.send(method, parameters).catch(() => {});
  }

  session.on('Fetch.requestPaused', (event) => {
    const hasEnded = event.responseStatusCode !== undefined || event.responseErrorReason !== undefined;
    void (hasEnded ? answered(event) : requests(event));
  });
  await session.send('Fetch.enable', { patterns: DOCUMENTS });
  return guarding;
}
