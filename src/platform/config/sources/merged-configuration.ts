import type { Environment } from '#platform/config/environment.js';
import { ConfigProblems, loadConfig, type LoadedConfig } from '#platform/config/load-config.js';
import { FROM_STORE, type DocumentSettings } from './document-settings.js';

/**
 * Validates a document over the environment, by the rules of the environment. Problems and warnings of a setting that the
 * document has name its key.
 *
 * @throws ConfigProblems with every problem at once
 */
export function loadMerged(environment: Environment, document: DocumentSettings): LoadedConfig {
  const { problems, keys } = document;
  try {
    const { config, warnings } = loadConfig(overlay(environment, document));
    if (problems.length > 0) throw new ConfigProblems([]);
    return {
      config,
      warnings: [...document.warnings, ...warnings.map((line) => named(line, keys))],
    };
  } catch (error) {
    if (!(error instanceof ConfigProblems)) throw error;
    const reported = problems.map((line) => line.slice(0, line.indexOf(': ', FROM_STORE.length)));
    const others = error.problems
      .map((line) => named(line, keys))
      .filter((line) => !reported.some((start) => line.startsWith(`${start}: `)));
    throw new ConfigProblems([...problems, ...others]);
  }
}

/** Puts the document's settings over the environment. Providers of a document replace those of the environment as a whole. */
function overlay(environment: Environment, document: DocumentSettings): Environment {
  const kept = Object.entries(environment).filter(
    ([name]) => !(document.hasProviders && /^SVC_IDP(?:S$|_)/.test(name)),
  );
  const set = Object.entries(document.variables).filter(([, value]) => value !== '');
  return Object.fromEntries([...kept, ...set]);
}

/** Names the key in place of the variable, in a line about a setting of the document. */
function named(line: string, keys: ReadonlyMap<string, string>): string {
  const variable = line.slice(0, line.indexOf(': '));
  if (!keys.has(variable)) return line;
  return FROM_STORE + line.replaceAll(/\b[A-Z][A-Z0-9_]+\b/g, (name) => keys.get(name) ?? name);
}
