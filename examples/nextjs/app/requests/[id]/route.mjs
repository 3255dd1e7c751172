// GET /requests/ID
import { piecework } from '../../../lib/piecework.mjs';
import { answering } from '../../../lib/respond.mjs';

export const runtime = 'nodejs';
export const dynamic = 'force-dynamic';

export const GET = answering(async (_request, { params }) => {
  const { id } = await params;
  const { status, outcome, counts } = await piecework().request(id).status();
  return Response.json({ id, status, outcome, counts });
});
