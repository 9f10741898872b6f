// The example of a first visit: the file of a small shop that treats search engines and AI crawlers differently.

export const EXAMPLE = {
  site: "",
  robots: `# robots.txt of a shop
User-agent: *
Disallow: /checkout/
Disallow: /*?sort=
Allow: /checkout/help
Crawl-delay: 5

User-agent: Googlebot
User-agent: Bingbot
Disallow: /private/
Dissalow: /drafts/
Allow: /private/press/

User-agent: GPTBot
User-agent: CCBot
User-agent: Google-Extended
User-agent: ClaudeBot
Disallow: /

Sitemap: https://shop.example/sitemap.xml
`,
  other: "",
  urls: [
    "https://shop.example/",
    "https://shop.example/tea",
    "https://shop.example/private/x",
    "https://shop.example/private/press/1",
    "https://shop.example/checkout/pay",
    "https://shop.example/checkout/help",
    "https://shop.example/list?sort=asc",
    "https://shop.example/img/a.png",
    "https://shop.example/drafts/new",
    "https://shop.example/search?q=tea",
  ].join("\n"),
  agents: ["Googlebot", "Bingbot", "GPTBot", "Yandex"].join("\n"),
  dialects: [],
  purposes: [],
  chosen: [2, 0],
  side: 0,
  view: "text",
  fetched: null,
  earlier: null,
};
