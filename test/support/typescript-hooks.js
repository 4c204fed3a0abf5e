// Lets a child process of a test run the TypeScript sources, also those with decorators, as vitest
// does:
// node --conditions=source --import ./test/support/typescript-hooks.js script.ts
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);

/** The folder of compiled files. A process loads the compiler only if a file has changed. */
const CACHE = fileURLToPath(
  new URL('../../node_modules/.cache/svc-test/compiled/', import.meta.url),
);
if (!existsSync(CACHE)) mkdirSync(CACHE, { recursive: true });

/**
 * Compiles a file, or returns what an earlier process compiled from the same text with this version
 * of the hooks.
 */
function compiled(fileName) {
  const text = readFileSync(fileName, 'utf8');
  const kept = `${CACHE}${hash('sha256', `${HOOKS}\n${fileName}\n${text}`)}.js`;
  if (existsSync(kept)) return readFileSync(kept, 'utf8');
  const ts = require('typescript');
  const { outputText } = ts.transpileModule(text, {
    fileName,
    compilerOptions: {
      target: ts.ScriptTarget.ES2024,
      module: ts.ModuleKind.ESNext,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
      isolatedModules: true,
    },
  });
  keep(kept, outputText);
  return outputText;
}

/**
 * Writes a compiled file into the cache. The file is renamed when it is complete, because another
 * process may read it at any moment.
 */
function keep(file, text) {
  const unfinished = `${file}.${process.pid}`;
  try {
    writeFileSync(unfinished, text);
    renameSync(unfinished, file);
  } catch {
    // The process may run as a user who cannot write here. Then it compiles the file again next
    // time.
  }
}

const HOOKS = hash('sha256', readFileSync(import.meta.filename));

registerHooks({
  resolve(specifier, context, nextResolve) {
    if (specifier.startsWith('.') && context.parentURL?.endsWith('.ts')) {
      const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
      if (existsSync(source)) return nextResolve(source.href, context);
    }
    return nextResolve(specifier, context);
  },
  load(url, context, nextLoad) {
    if (!url.endsWith('.ts')) return nextLoad(url, context);
    return { format: 'module', source: compiled(fileURLToPath(url)), shortCircuit: true };
  },
});
