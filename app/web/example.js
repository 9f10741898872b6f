// The example of a first visit: a small file that shows most features of this page.

export const EXAMPLE = {
  site: "",
  robots: `# A small shop
User-agent: *
Disallow: /basket/
Disallow: /search
Allow: /search/help$
Crawl-delay: 5

User-agent: SeznamBot
Disallow: /basket/
Disallow: /*?sort=
Request-rate: 1/10s 0800-2000
Request-rate: 1/2s 2000-0800

User-agent: Googlebot
Dissalow: /basket/
Allow: /basket/gift-cards

Sitemap: https://shop.example/sitemap.xml
`,
  other: "",
  urls: [
    "https://shop.example/",
    "https://shop.example/basket/42",
    "https://shop.example/basket/gift-cards",
    "https://shop.example/tea?sort=price",
    "https://shop.example/search/help",
  ].join("\n"),
  agents: ["SeznamBot", "Googlebot", "ExampleBot/1.0"].join("\n"),
  dialects: [],
  purposes: [],
  chosen: [1, 0],
  side: 0,
  view: "text",
  fetched: null,
  earlier: null,
};
