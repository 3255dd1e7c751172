// GET /requests/ID/events
import { progressEvents, SSE_HEADERS } from '../../../../../http/streams.mjs';
import { piecework } from '../../../../lib/piecework.mjs';
import { answering, streamed } from '../../../../lib/respond.mjs';

export const runtime = 'nodejs';
export const dynamic = 'force-dynamic';

export const GET = answering(async ({ signal }, { params }) => {
  const request = piecework().request((await params).id);
  // An unknown request is a 404, which has to be known before the first event.
  await request.status();
  return streamed(progressEvents(request, { signal }), SSE_HEADERS);
});
