// Writes docs/api/piecework.api.md: everything that `import … from 'piecework'` exports, with its types. Its diff shows
// a change of the public API. With --check it writes nothing and fails when the report is not up to date.
// Reads the built packages: run `npm run build` before.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = join(root, 'docs/api/piecework.api.md');
const folder = mkdtempSync(join(tmpdir(), 'piecework-api-'));

function buildReport() {
  const projectFolder = join(root, 'packages/piecework');
  const roles = ['protocol', 'producer', 'notifier', 'worker', 'queues'];
  const none = { logLevel: 'none' };
  const config = ExtractorConfig.prepare({
    packageJsonFullPath: join(projectFolder, 'package.json'),
    configObjectFullPath: undefined,
    configObject: {
      projectFolder,
      mainEntryPointFilePath: join(projectFolder, 'dist/index.d.ts'),
      bundledPackages: roles.map((name) => `@piecework/${name}`),
      newlineKind: 'lf',
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            ...{ module: 'nodenext', moduleResolution: 'nodenext', target: 'es2023' },
            ...{ lib: ['es2023', 'esnext.disposable'], types: ['node'] },
            ...{ strict: true, skipLibCheck: true },
          },
          include: ['dist/index.d.ts'],
        },
      },
      apiReport: {
        ...{ enabled: true, reportFileName: 'piecework.api.md' },
        ...{ reportFolder: folder, reportTempFolder: join(folder, 'temp') },
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: { default: none },
        extractorMessageReporting: {
          default: none,
          // Makes the report name each type that the API uses without exporting it.
          'ae-forgotten-export': { logLevel: 'warning', addToApiReportFile: true },
        },
        tsdocMessageReporting: { default: none },
      },
    },
  });
  Extractor.invoke(config, {
    localBuild: true,
    messageCallback: (message) => {
      message.handled = true;
    },
  });
  // The report contains absolute paths of other packages.
  return readFileSync(join(folder, 'piecework.api.md'), 'utf8').replaceAll(root, '');
}

try {
  const report = buildReport();
  if (!process.argv.includes('--check')) {
    writeFileSync(target, report);
    console.log(`wrote ${report.split('\n').length} lines`);
  } else if (readFileSync(target, 'utf8') !== report) {
    console.error(
      'docs/api/piecework.api.md is stale: run `npm run api`, review its diff and commit it',
    );
    process.exitCode = 1;
  } else {
    console.log('piecework.api.md is fresh');
  }
} finally {
  rmSync(folder, { recursive: true });
}
