/** Every page of the dashboard, of the fleet in fleet.ts. */
export const PAGES: Readonly<Record<string, string>> = {
  overview: '#/req/overview',
  requests: '#/req/requests?state=open',
  request: '#/req/request/thumbnails-november',
  failed: '#/req/request/crawl-2026-11-22',
  workers: '#/req/workers',
  errors: '#/req/errors',
  beside: '#/req/beside',
};
