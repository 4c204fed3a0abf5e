/**
 * Reads the instructions of a Dockerfile, sorted by stage. The release takes its files from them,
 * so that the package has what the image has, and neither lists the files a second time.
 *
 * @param {string} dockerfile the text of the file
 * @returns {{ keyword: string, rest: string }[][]} the instructions of each stage, from its FROM on
 */
export function stagesOf(dockerfile) {
  const stages = [];
  const lines = dockerfile
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n/g, ' ')
    .split('\n');
  for (const line of lines) {
    const [, keyword, rest] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (keyword === undefined) continue;
    if (keyword === 'FROM') stages.push([]);
    stages.at(-1)?.push({ keyword, rest });
  }
  return stages;
}

/**
 * Returns what a stage copies.
 *
 * @param {{ keyword: string, rest: string }[]} stage
 * @returns {{ stage: string | undefined, source: string }[]} each source with its path: below the
 *   context of the build, or below `/app` of the named stage
 */
export function copiesOf(stage) {
  return stage
    .filter(({ keyword }) => keyword === 'COPY')
    .flatMap(({ rest }) => {
      const [, from, paths] = /^(?:--from=(\S+)\s+)?(.*)$/.exec(rest);
      const sources = paths.split(/\s+/).slice(0, -1);
      return sources.map((source) => ({
        stage: from,
        source: source.replace(/^\/app\//, ''),
      }));
    });
}

/**
 * Returns how the image installs its packages.
 *
 * @param {{ keyword: string, rest: string }[]} stage the instructions of one stage
 * @returns {{ omitted: string[], deleted: string[] }} `omitted` has the options of `npm ci`, such
 *   as `--omit=dev`. `deleted` has the endings of the files that the image deletes from
 *   `node_modules`
 * @throws Error for an image that installs in another way
 */
export function installationOf(stage) {
  const command = stage.find(({ keyword, rest }) => keyword === 'RUN' && rest.includes('npm ci'));
  const options = /npm ci((?: --omit=\w+)+)/.exec(command?.rest ?? '')?.[1];
  const deleted = /find node_modules -type f \\\(([^)]*)\\\) -delete/.exec(command?.rest ?? '');
  if (options === undefined || deleted === null)
    throw new Error('the Dockerfile installs its packages in a way that the release does not know');
  return {
    omitted: options.trim().split(' '),
    deleted: [...deleted[1].matchAll(/-name '\*([.\w]+)'/g)].map(([, ending]) => ending),
  };
}

/**
 * Returns the function that tells whether a path is in the context of the build.
 *
 * @param {string} ignored the text of `.dockerignore`, whose last fitting line decides
 */
export function contextOf(ignored) {
  const rules = ignored.split('\n').filter((line) => /^[^#\s]/.test(line));
  const matchers = rules.map((rule) => {
    const pattern = rule.replace(/^!/, '');
    const source = pattern.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '[^/]*');
    return { admits: rule.startsWith('!'), expression: new RegExp(`^${source}(?:/|$)`) };
  });
  return (path) => matchers.findLast(({ expression }) => expression.test(path))?.admits ?? true;
}
