// The same in CommonJS, where Jest loads ES modules by import() alone.
let kit;
let mail;
let pw;
beforeAll(async () => {
  const { fakeTask, matchers, startTestKit } = await import('@piecework/testing');
  const { Piecework } = await import('piecework');
  expect.extend(matchers);
  mail = fakeTask('send-mail', ({ to }) => `sent to ${to}`);
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
