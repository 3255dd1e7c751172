// GET /requests/ID/results
import { downloadHeaders, resultLines } from '../../../../../http/streams.mjs';
import { piecework } from '../../../../lib/piecework.mjs';
import { answering, streamed } from '../../../../lib/respond.mjs';

export const runtime = 'nodejs';
export const dynamic = 'force-dynamic';

export const GET = answering(async ({ signal }, { params }) => {
  const request = piecework().request((await params).id);
  await request.status();
  return streamed(resultLines(request, { signal }), downloadHeaders(request.id));
});
