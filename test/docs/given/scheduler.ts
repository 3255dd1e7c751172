export interface Reminder {
  readonly to: string;
  readonly what: string;
}

export const remind = async (_reminder: Reminder): Promise<void> => {};
