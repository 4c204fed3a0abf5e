import { readEnvironment } from '#platform/config/environment.js';
import { loadConfig, type LoadedConfig } from '#platform/config/load-config.js';

/**
 * Reads the whole configuration of production: collects the settings, validates them, then asks other services for secrets.
 *
 * @throws ConfigProblems with every problem at once
 */
export async function readConfiguration(): Promise<LoadedConfig> {
  return loadConfig(readEnvironment());
}
