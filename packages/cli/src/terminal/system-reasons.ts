/** The code of `openOurs`. */
export const OF_OTHERS = 'OF_OTHERS';

/** Why a file cannot be opened or written, in words. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist',
  ENOTDIR: 'its folder is not a folder',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space left on the disk',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file would be too large',
  EIO: 'the disk failed',
  EPIPE: 'its reader has closed it',
  [OF_OTHERS]: 'it belongs to another user, in a folder that all may write into',
};

export const reasonOf = ({ code = '', message }: NodeJS.ErrnoException) => REASONS[code] ?? message;
