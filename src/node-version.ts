const OLDEST = 24;

/**
 * Ends the process with one line when its Node is too old. Entry points call it before they import anything else: a
 * module that needs a newer Node would fail first, and less clearly.
 */
export function requireNode(): void {
  const { node } = process.versions;
  if (Number(node.split('.')[0]) >= OLDEST) return;
  process.stderr.write(`svc-server needs Node ${OLDEST} or newer; this is ${node}.\n`);
  process.exit(1);
}
