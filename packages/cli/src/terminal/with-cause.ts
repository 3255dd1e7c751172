/** The message of an error, with that of its cause unless it has that already. */
export function withCause({ message, cause }: Error): string {
  const why = cause instanceof Error ? cause.message : '';
  return message.includes(why) ? message : `${message}: ${why}`;
}
