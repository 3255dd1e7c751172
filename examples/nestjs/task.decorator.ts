import { defineTask, type Task as TaskDefinition } from 'piecework';

// biome-ignore lint/suspicious/noExplicitAny: a task of any payload and result.
type AnyTask = TaskDefinition<any, any, any>;

const tasks = new WeakMap<object, AnyTask>();

/** The task of a method that has `@Task`. */
export const taskOf = (method: object): AnyTask | undefined => tasks.get(method);

/**
 * Makes a method the handler of a task, given by its name or as `defineTask` returned it: `(payload, context) => result`.
 * @throws InvalidOptionError when the name is not allowed
 */
export const Task =
  (task: string | AnyTask): MethodDecorator =>
  (_target, _name, descriptor) => {
    const known = typeof task === 'string' ? defineTask(task) : task;
    tasks.set(descriptor.value as object, known);
  };
