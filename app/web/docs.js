// The API reference, rendered by Swagger UI. Paths are relative to this page, so a proxy may add a prefix. The online
// validator is off: the content security policy blocks it.
const base = new URL(".", document.baseURI).href.replace(/\/$/, "");
const response = await fetch("openapi.json");
const spec = { ...(await response.json()), servers: [{ url: base }] };
SwaggerUIBundle({ spec, dom_id: "#api", deepLinking: true, validatorUrl: null });
