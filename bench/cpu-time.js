import { existsSync, readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100; // sysconf(_SC_CLK_TCK), the same on every Linux

/**
 * Reads the CPU seconds that a server and its descendants have used (proc(5)). A descendant is a
 * process of the embedded PostgreSQL: the watchdog's shell, the postmaster, and the postmaster's
 * children.
 *
 * @param external the process id of a PostgreSQL that is no descendant of the server; undefined if
 *   the server has its own
 * @returns `{ server, postgres }`; for a server without any PostgreSQL, `postgres` is 0
 */
export function cpuSecondsOf(pid, external) {
  const children = new Map();
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = statOf(entry);
    // The process has just ended. Its time is now in the time of the ended children of its parent.
    if (stat === undefined) continue;
    children.set(stat.parent, [...(children.get(stat.parent) ?? []), entry]);
  }
  const secondsBelow = (parent) =>
    (children.get(parent) ?? []).reduce((sum, child) => sum + secondsOfTree(child), 0);
  const secondsOfTree = (root) => ownSeconds(root) + reapedSeconds(root) + secondsBelow(root);
  const ofExternal = external === undefined ? 0 : secondsOfTree(String(external));
  return {
    server: ownSeconds(String(pid)),
    postgres: secondsBelow(String(pid)) + ofExternal,
  };
}

/**
 * Starts a measurement of CPU time. It returns a function that returns the CPU seconds since the
 * start, in the form of {@link cpuSecondsOf}.
 */
export function startCpuTime(pid, external) {
  const before = cpuSecondsOf(pid, external);
  return () => {
    const after = cpuSecondsOf(pid, external);
    return {
      server: after.server - before.server,
      // The time of an ended process is known to 0.01 s only, so the later sum may be smaller than
      // the earlier sum.
      postgres: Math.max(0, after.postgres - before.postgres),
    };
  };
}

/** Returns the CPU time of one operation as columns of a table, in microseconds. */
export function cpuColumns({ server, postgres }, operations) {
  const microseconds = (seconds) => ((seconds * 1e6) / operations).toFixed(0);
  return {
    'server µs': microseconds(server),
    'PostgreSQL µs': microseconds(postgres),
    'together µs': microseconds(server + postgres),
  };
}

/** Adds up the CPU seconds of several measurements. */
export function sumOfCpu(turns) {
  return turns.reduce(
    (sum, { server, postgres }) => ({
      server: sum.server + server,
      postgres: sum.postgres + postgres,
    }),
    { server: 0, postgres: 0 },
  );
}

/**
 * Returns the CPU seconds of all live threads of a process, which the scheduler counts in
 * nanoseconds.
 */
function ownSeconds(pid) {
  if (!existsSync('/proc/self/schedstat')) return statOf(pid)?.own ?? 0;
  let nanoseconds = 0;
  for (const thread of filesIn(`/proc/${pid}/task`)) {
    const schedstat = textOf(`/proc/${pid}/task/${thread}/schedstat`);
    if (schedstat !== undefined) nanoseconds += Number(schedstat.split(' ')[0]);
  }
  return nanoseconds / 1e9;
}

/**
 * Returns the CPU seconds of the ended children of a process. The kernel counts a child when the
 * process has read its exit status (wait).
 */
function reapedSeconds(pid) {
  return statOf(pid)?.reaped ?? 0;
}

function statOf(pid) {
  const stat = textOf(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const seconds = (...at) =>
    at.reduce((sum, field) => sum + Number(fields[field]), 0) / TICKS_PER_SECOND;
  return { parent: fields[1], own: seconds(11, 12), reaped: seconds(13, 14) };
}

function filesIn(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return []; // the process has just ended
  }
}

function textOf(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined; // the process or the thread has just ended
  }
}
