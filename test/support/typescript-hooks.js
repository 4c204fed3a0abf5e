// Lets a child process of a test run the TypeScript sources with decorators, like vitest: node
// --conditions=source --import ./test/support/typescript-hooks.js script.ts
import { existsSync, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const compilerOptions = {
  target: ts.ScriptTarget.ES2024,
  module: ts.ModuleKind.ESNext,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  isolatedModules: true,
  inlineSourceMap: true,
};

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
    const fileName = fileURLToPath(url);
    const source = ts.transpileModule(readFileSync(fileName, 'utf8'), {
      fileName,
      compilerOptions,
    });
    return { format: 'module', source: source.outputText, shortCircuit: true };
  },
});
