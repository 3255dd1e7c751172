import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { nonceOf } from '../security/headers.js';

const NAMES = { 'page.js': 'text/javascript', 'page.css': 'text/css' } as const;

/** The page: one document, one script and one stylesheet, from memory. There are no other files to ask for. */
export function addAssets(instance: FastifyInstance): void {
  const files = Object.entries(NAMES).map(([name, type]) => ({ name, type, ...read(name) }));
  const [script, style] = files.map(({ name, tag }) => `${name}?${tag}`);
  instance.get('/', (request, reply) => {
    const path = request.url.split('?')[0] ?? '';
    // Its addresses are relative: the page must be below a slash.
    if (!path.endsWith('/')) return reply.redirect(`${path}/`, 308);
    const nonce = nonceOf(request);
    return reply.type('text/html; charset=utf-8').send(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Piecework</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cg fill='%232f6f6a'%3E%3Crect x='1' y='2' width='14' height='3' rx='1'/%3E%3Crect x='1' y='6.5' width='9' height='3' rx='1'/%3E%3Crect x='1' y='11' width='5' height='3' rx='1'/%3E%3C/g%3E%3C/svg%3E">
<link rel="stylesheet" href="${style}" nonce="${nonce}">
<script type="module" src="${script}" nonce="${nonce}"></script>
</head>
<body><div id="app"><noscript>The dashboard needs JavaScript.</noscript></div></body>
</html>
`);
  });
  for (const { name, type, content, tag } of files)
    instance.get(`/${name}`, (request, reply) => {
      const isCurrent = request.url.endsWith(`?${tag}`);
      const keep = isCurrent ? 'private, max-age=31536000, immutable' : 'no-store';
      return reply.header('cache-control', keep).type(`${type}; charset=utf-8`).send(content);
    });
}

function read(name: string): { content: Buffer; tag: string } {
  try {
    const content = readFileSync(new URL(`../page/${name}`, import.meta.url));
    return { content, tag: createHash('sha256').update(content).digest('hex').slice(0, 16) };
  } catch (cause) {
    throw new Error('the page of the dashboard is not built; run: npm run setup', { cause });
  }
}
