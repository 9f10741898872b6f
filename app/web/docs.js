// The API's description, shown by Swagger UI. Paths are below this page, wherever a proxy has put it. No validator: that
// is a service of others, which the policy shuts out.
const base = new URL(".", document.baseURI).href.replace(/\/$/, "");
const response = await fetch("openapi.json");
const spec = { ...(await response.json()), servers: [{ url: base }] };
SwaggerUIBundle({ spec, dom_id: "#api", deepLinking: true, validatorUrl: null });
