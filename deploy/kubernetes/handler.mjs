/** The handler of the workers: put yours here. It is part of a ConfigMap, so a change of it restarts the workers. */
export default async function handler(payload) {
  return JSON.stringify(payload).length;
}
