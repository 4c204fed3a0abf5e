const OLDEST = 24;

/**
 * Ends the process with one line when Node is too old. Entry points call it before any import: another module
 * could fail first, with a less clear error.
 */
export function requireNode(): void {
  const { node } = process.versions;
  if (Number(node.split('.')[0]) >= OLDEST) return;
  process.stderr.write(`svc-server needs Node ${OLDEST} or newer; this is ${node}.\n`);
  process.exit(1);
}
