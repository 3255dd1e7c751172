/** Whether a path may be a pattern. */
export const isPattern = (path: string): boolean => /[*?[\](){}]/.test(path);
