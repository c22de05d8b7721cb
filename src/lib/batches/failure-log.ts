// Log of failures that repeat while something is unavailable. Writes one line at once, and then one line a minute with the number
// of failures.
import { AppError, levelOf } from '../errors.ts'
import type { Logger } from '../log.ts'

type Lines = Pick<Logger, 'warn' | 'error'>

export type FailureLog = {
  /** Logs a failure that is likely to repeat. The line has the message of the latest error, without a stack. */
  repeated(message: string, error: unknown): void
  /** Logs a failed request to `log`. If something is unavailable, logs it as a repeating failure, else with all details. */
  request(log: Lines, message: string, error: unknown, fields: Record<string, unknown>): void
  /** Logs the failures that were counted but not logged yet. */
  close(): void
}

const everyMs = 60_000
/** Maximum number of different messages. Messages are fixed texts of the code, so it is never reached. */
const mostMessages = 100

type Count = {
  log: Lines
  level: 'warn' | 'error'
  unlogged: number
  error: unknown
  timer: NodeJS.Timeout | undefined
}

/** `isAway` returns true if an error means that something is unavailable. `wait` calls back once, after `ms`. */
export function createFailureLog(
  ours: Lines,
  isAway: (error: unknown) => boolean,
  wait: (call: () => void, ms: number) => NodeJS.Timeout = setTimeout,
): FailureLog {
  const counts = new Map<string, Count>()

  /** Starts a minute after each line. If nothing fails in that minute, the next failure is logged at once. */
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

/** Message of an error's root cause. */
function reasonOf(error: unknown): string {
  const cause = rootCause(error)
  if (!(cause instanceof Error)) return String(cause)
  return cause.message || String((cause as { code?: unknown }).code ?? cause.name)
}
