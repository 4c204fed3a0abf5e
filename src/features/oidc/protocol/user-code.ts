/** The letters a code has, and after which of them it is written with a dash. */
const HALF = 4;

/** A user code as it is kept, however a person typed it: in small letters, with dashes, spaces or none. */
export function normalizeUserCode(typed: string): string {
  return typed.toUpperCase().replace(/[^A-Z0-9]/g, '');
}

/** A user code as it is shown, in two halves. */
export function formatUserCode(userCode: string): string {
  const normal = normalizeUserCode(userCode);
  return normal.length > HALF ? `${normal.slice(0, HALF)}-${normal.slice(HALF)}` : normal;
}
