/** The handler of the worker whose start is measured: says what the process has used until its first sub-request. */
export default async (): Promise<number> => {
  const { user, system } = process.cpuUsage();
  return user + system;
};
