/** Awaits the promise. If the signal is aborted before, rejects with the reason of the signal at once. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  signal.throwIfAborted()
  signal.addEventListener('abort', abort)
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', abort))
}
