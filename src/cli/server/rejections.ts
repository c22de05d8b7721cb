// Promise rejections that no code handles, while the server runs.
import type { App } from '#app.ts'

/**
 * Logs and counts unhandled rejections until it is disposed. Without it, Node ends the process at the first one, so one faulty
 * request would end the requests of all clients. An uncaught exception still ends the process (decision 173).
 */
export function logRejections({ log, metrics }: Pick<App, 'log' | 'metrics'>): Disposable {
  const note = (error: unknown): void => {
    metrics.unhandledRejections.inc()
    log.error('promise rejection was not handled', { error })
  }
  process.on('unhandledRejection', note)
  return { [Symbol.dispose]: () => void process.off('unhandledRejection', note) }
}
