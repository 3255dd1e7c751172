// The task of the recipes, shared by the web servers that submit it and the worker that runs it.
import { defineTask } from 'piecework';
import { z } from 'zod';

/** Counts the words of a text. The schema lets a wrong item fail its submission, with a message for the client. */
export const countWords = defineTask('count-words', { payload: z.string().max(100_000) });

export const words = (text) => text.split(/\s+/).filter(Boolean).length;
