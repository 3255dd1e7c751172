// A test for Jest in an ES module, as docs/guide/testing.md says. install.mjs copies it into a project.
import { fakeTask, matchers, startTestKit } from '@piecework/testing';
import { Piecework } from 'piecework';

expect.extend(matchers);
const mail = fakeTask('send-mail', ({ to }) => `sent to ${to}`);
let kit;
let pw;
beforeAll(async () => {
  kit = await startTestKit();
  pw = new Piecework({ redis: kit.redis });
});
afterAll(() => pw.close().then(() => kit.close()));

test('mails are sent in the morning', async () => {
  const options = { task: 'send-mail', delayMs: 8 * 3_600_000 };
  const request = await pw.submit([{ to: 'a@x' }, { to: 'b@x' }], options);
  await kit.drain(request, { handlers: [mail.handler] });
  await expect(request).toHaveResults(['sent to a@x', 'sent to b@x']);
});
