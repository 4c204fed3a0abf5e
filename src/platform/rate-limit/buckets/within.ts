/**
 * Waits for an answer, but not for ever.
 *
 * @param milliseconds how long
 * @throws Error when there is none by then; what comes later is ignored
 */
export async function within<T>(milliseconds: number, answer: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new Error(`no answer within ${milliseconds} ms`));
  }, milliseconds);
  try {
    return await Promise.race([answer, promise]);
  } finally {
    clearTimeout(timer);
  }
}
