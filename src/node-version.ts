const OLDEST = 24;

/**
 * Ends the process with one line if Node is too old. Entry points call it before they import other
 * modules, because such a module could fail first with a less clear error.
 */
export function requireNode(): void {
  const { node } = process.versions;
  if (Number(node.split('.')[0]) >= OLDEST) return;
  process.stderr.write(`svc-server needs Node ${OLDEST} or newer; this is ${node}.\n`);
  process.exit(1);
}

/**
 * Returns the variables that the arguments of the service set: `--workers N` is SVC_WORKERS. Any
 * other argument ends the process with status 2, as {@link refuseArguments} says.
 */
export function argumentsOfService(program: string): Readonly<Record<string, string>> {
  const [first = '', ...rest] = process.argv.slice(2);
  const inline = /^--workers=(.*)$/.exec(first)?.[1];
  const count = inline ?? (first === '--workers' ? rest.shift() : undefined);
  if (count === undefined || count === '') {
    refuseArguments(program, process.argv.slice(2));
    return {};
  }
  refuseArguments(program, rest);
  return { SVC_WORKERS: count };
}

/**
 * Ends the process with status 2 if an entry point got arguments that it does not take. Otherwise
 * it would start without the setting that the operator wanted. The message repeats the name of an
 * option, but no value, because a value may contain a password.
 */
export function refuseArguments(program: string, given = process.argv.slice(2)): void {
  if (given.length === 0) return;
  const names = given.map((text) => /^--?[a-z][a-z0-9-]{0,40}(?==|$)/.exec(text)?.[0] ?? 'a value');
  process.stderr.write(
    `${program} takes no arguments${program === 'main.js' ? ' but --workers N' : ''}, and got ${names.join(', ')}. Settings are environment variables (docs/operations/variables.md).\n`,
  );
  process.exit(2);
}
