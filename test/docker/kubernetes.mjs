// Checks deploy/kubernetes against the schemas of the Kubernetes API, as the package kubernetes-models has them. Where
// kubectl is on PATH, or KUBECTL names it, `kubectl kustomize` first renders what a cluster would get. Needs the
// registry of npm.
//
//   npm run test:kubernetes
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseAllDocuments } from 'yaml';

const MODELS = 'kubernetes-models@5';
const source = fileURLToPath(new URL('../../deploy/kubernetes', import.meta.url));
const kubectl = process.env.KUBECTL ?? 'kubectl';

const parsed = (text) => {
  const documents = parseAllDocuments(text);
  for (const { errors } of documents) if (errors.length > 0) throw errors[0];
  return documents.map((document) => document.toJS());
};

function resources() {
  const rendered = spawnSync(kubectl, ['kustomize', source], { encoding: 'utf8' });
  if (rendered.error?.code === 'ENOENT') {
    console.log(
      'there is no kubectl: the files are checked as they are, without what Kustomize makes of them',
    );
    const files = readdirSync(source).filter(
      (name) => /\.yaml$/.test(name) && !/^kustom/.test(name),
    );
    return files.flatMap((name) => parsed(readFileSync(join(source, name), 'utf8')));
  }
  if (rendered.status !== 0) throw new Error(`kubectl kustomize: ${rendered.stderr}`);
  const found = parsed(rendered.stdout);
  if (!rendered.stdout.includes('piecework-handler-')) throw new Error('the ConfigMap has no hash');
  console.log(`kubectl kustomize renders ${found.length} resources`);
  return found;
}

/** The model of a kind, which checks by the schema of the API. Only the package's own entry for imports names it. */
async function modelOf(folder, { apiVersion, kind }) {
  const version = join(folder, 'node_modules/kubernetes-models', apiVersion, 'index.js');
  const { [kind]: model } = await import(pathToFileURL(version).href);
  if (!model) throw new Error(`${MODELS} has no ${apiVersion} ${kind}`);
  return model;
}

/** Why a resource is refused; undefined: it is not. */
async function refusal(folder, resource) {
  const Model = await modelOf(folder, resource);
  try {
    new Model(resource).validate();
    return undefined;
  } catch (error) {
    return error.message;
  }
}

const folder = mkdtempSync(join(tmpdir(), 'piecework-kubernetes-'));
try {
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', MODELS];
  const { status, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm ${args.join(' ')}: ${stderr}`);
  const found = resources();
  for (const resource of found) {
    const why = await refusal(folder, resource);
    console.log(`${why ? 'NO' : 'ok'}  ${resource.kind} ${resource.metadata.name} ${why ?? ''}`);
    if (why) process.exitCode = 1;
  }
  // The check itself: a wrong type and a missing field are refused.
  const broken = structuredClone(found.find(({ kind }) => kind === 'Deployment'));
  broken.spec.replicas = 'two';
  if (!(await refusal(folder, broken))) throw new Error('a wrong type was not refused');
  broken.spec.replicas = 2;
  delete broken.spec.template.spec.containers[0].name;
  if (!(await refusal(folder, broken))) throw new Error('a missing field was not refused');
} finally {
  rmSync(folder, { recursive: true, force: true });
}
