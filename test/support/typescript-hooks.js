// Lets a child process of a test run the TypeScript sources, also those with decorators, as vitest
// does:
// node --conditions=source --import ./test/support/typescript-hooks.js script.ts
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);

/**
 * The folder of compiled files. A process loads the TypeScript compiler only for files that are not
 * here.
 */
const CACHE = fileURLToPath(
  new URL('../../node_modules/.cache/svc-test/compiled/', import.meta.url),
);
if (!existsSync(CACHE)) mkdirSync(CACHE, { recursive: true });

/**
 * Compiles a file, or returns the code that an earlier process compiled. That code is used only if
 * the file's text and this file are the same as then.
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
 * Writes a compiled file into the folder. Another process may read the file at any time, so it gets
 * its final name only when it is complete.
 */
function keep(file, text) {
  const unfinished = `${file}.${process.pid}`;
  try {
    writeFileSync(unfinished, text);
    renameSync(unfinished, file);
  } catch {
    // The process may run as a user who cannot write to this folder. Such a process compiles the
    // file each time.
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
