/** An error about what a program did, without a stack of our code, which would not help. */
export function programError(message: string, name = 'Error'): Error {
  const error = new Error(message);
  error.name = name;
  error.stack = `${name}: ${message}`;
  return error;
}
