import { vi } from 'vitest';

// Files that share a process share what is in packages and dependencies, and nothing of test/.
vi.resetModules();
