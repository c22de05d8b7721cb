// Log of failures that repeat while something is unavailable: one line at once, and then one a minute with a count.
import { AppError, levelOf } from '../errors.ts'
import type { Logger } from '../log.ts'

type Lines = Pick<Logger, 'warn' | 'error'>

export type FailureLog = {
  /** Logs a failure that is likely to repeat. Its line has the message of the last error, without a stack. */
  repeated(message: string, error: unknown): void
  /** Logs a failed request to `log`: as a failure that repeats if something is unavailable, else in full. */
  request(log: Lines, message: string, error: unknown, fields: Record<string, unknown>): void
  /** Logs the failures that are counted and not logged yet. */
  close(): void
}

const everyMs = 60_000
/** Messages are written in the code, so this is never reached; a caller cannot fill memory. */
const mostMessages = 100

type Count = {
  log: Lines
  level: 'warn' | 'error'
  unlogged: number
  error: unknown
  timer: NodeJS.Timeout | undefined
}

/** `isAway` returns true if an error means that something is unavailable; `wait` calls back once, later. */
export function createFailureLog(
  ours: Lines,
  isAway: (error: unknown) => boolean,
  wait: (call: () => void, ms: number) => NodeJS.Timeout = setTimeout,
): FailureLog {
  const counts = new Map<string, Count>()

  /** The next minute begins when a line is logged, and ends without one if nothing failed in it. */
  const logCount = (message: string, count: Count): void => {
    clearTimeout(count.timer)
    count.timer = undefined
    if (count.unlogged === 0) return void counts.delete(message)
    count.log[count.level](message, { count: count.unlogged, reason: reasonOf(count.error) })
    count.unlogged = 0
    count.timer = wait(() => logCount(message, count), everyMs)
    count.timer.unref()
  }
  const add = (log: Lines, message: string, error: unknown): void => {
    const count = counts.get(message) ?? { log, level: 'error', unlogged: 0, error, timer: undefined }
    if (counts.size < mostMessages) counts.set(message, count)
    Object.assign(count, { log, level: levelOf(error), unlogged: count.unlogged + 1, error })
    if (!count.timer) logCount(message, count)
  }
  return {
    repeated: (message, error) => add(ours, message, error),
    request(log, message, error, fields) {
      if (isAway(error)) add(log, message, error)
      else log[levelOf(error)](message, { ...fields, error: rootCause(error) })
    },
    close() {
      for (const [message, count] of counts) {
        logCount(message, count)
        clearTimeout(count.timer)
      }
    },
  }
}

function rootCause(error: unknown): unknown {
  return error instanceof AppError ? (error.cause ?? error) : error
}

/** Message of the root cause of an error. */
function reasonOf(error: unknown): string {
  const cause = rootCause(error)
  if (!(cause instanceof Error)) return String(cause)
  return cause.message || String((cause as { code?: unknown }).code ?? cause.name)
}
