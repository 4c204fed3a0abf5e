/**
 * The levels that RUST_LOG may name, each with its number in pino. `off` is above the levels of all
 * lines.
 */
const LEVELS: Readonly<Record<string, number>> = {
  trace: 10,
  debug: 20,
  info: 30,
  warn: 40,
  error: 50,
  off: 100,
};

/**
 * A filter of log lines by their level and their target, which is the part of the service that
 * writes them.
 */
export interface LogFilter {
  /**
   * The lowest level that any rule allows, by the name of the level in pino; `silent` if every rule
   * is `off`.
   */
  readonly level: string;
  /** Returns true if a line with this level (a number of pino) and this target is written. */
  allows(level: number, target: string): boolean;
}

/**
 * Parses the directives of RUST_LOG, such as `info,security=warn,svc_server::scim=debug`. A level
 * without a target is the default. A target without a level writes all its lines. If several
 * targets match, the longest one decides.
 *
 * A target is the context of a logger. The leading `svc_server::` may be left out, and `svc_server`
 * alone means all targets.
 *
 * @throws Error naming RUST_LOG for a level that does not exist
 */
export function parseLogFilter(directives: string): LogFilter {
  const rules = new Map<string, number>([['', LEVELS['info'] ?? 30]]);
  for (const directive of directives.split(',').map((part) => part.trim())) {
    if (directive === '') continue;
    const [left = '', right] = directive.split('=', 2);
    if (right === undefined && Object.hasOwn(LEVELS, left.toLowerCase())) {
      rules.set('', levelNumber(left));
    } else {
      rules.set(normalizeTarget(left), right === undefined ? 10 : levelNumber(right));
    }
  }
  const decided = new Map<string, number>();
  const lowest = Math.min(...rules.values());
  return {
    level:
      Object.entries(LEVELS).find(([name, n]) => n === lowest && name !== 'off')?.[0] ?? 'silent',
    allows(level, target) {
      let minimum = decided.get(target);
      if (minimum === undefined) {
        minimum = ruleFor(rules, normalizeTarget(target));
        decided.set(target, minimum);
      }
      return level >= minimum;
    },
  };
}

function ruleFor(rules: ReadonlyMap<string, number>, target: string): number {
  const parts = target === '' ? [] : target.split('::');
  for (let length = parts.length; length >= 0; length -= 1) {
    const rule = rules.get(parts.slice(0, length).join('::'));
    if (rule !== undefined) return rule;
  }
  return LEVELS['info'] ?? 30;
}

function normalizeTarget(target: string): string {
  return target.trim().replace(/^svc_server(?:::|$)/, '');
}

function levelNumber(name: string): number {
  const known = name.trim().toLowerCase();
  const level = Object.hasOwn(LEVELS, known) ? LEVELS[known] : undefined;
  if (level === undefined) {
    throw new Error('RUST_LOG: a level must be trace, debug, info, warn, error or off');
  }
  return level;
}
