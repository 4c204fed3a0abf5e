import { readFileSync } from 'node:fs';

/** Reads the resident memory of a process (proc(5)) in MiB. */
export function memoryOf(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

/**
 * Calls a function, and measures the highest memory of a process meanwhile, ten times a second.
 * @returns the result of the function, and the memory in MiB
 */
export async function watchMemory(pid, act) {
  let highest = 0;
  const read = () => {
    highest = Math.max(highest, memoryOf(pid));
  };
  const timer = setInterval(read, 100);
  try {
    const acts = await act();
    read();
    return { acts, highest };
  } finally {
    clearInterval(timer);
  }
}
