// POST /requests
import { countWords } from '../../../http/task.mjs';
import { piecework } from '../../lib/piecework.mjs';
import { answering } from '../../lib/respond.mjs';

// The client of Redis needs Node, and no answer may be cached.
export const runtime = 'nodejs';
export const dynamic = 'force-dynamic';

export const POST = answering(async (request) => {
  const { items } = await request.json().catch(() => ({}));
  const { id } = await piecework().submit(items, { task: countWords });
  return Response.json({ id }, { status: 202, headers: { location: `/requests/${id}` } });
});
