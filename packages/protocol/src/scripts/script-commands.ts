import { commandsInText } from '../redis/commands-in-text.js';
import { type ScriptName, scripts } from './scripts.generated.js';

/** The Redis commands that a script calls, as ACL rules name them: 'hset', 'xinfo|groups'. */
export const commandsIn = (script: ScriptName): string[] => commandsInText(scripts[script].lua);
