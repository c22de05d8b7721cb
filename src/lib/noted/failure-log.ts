// Log of failures that repeat while something is unavailable: one line at once, and then one a minute with a count.
import { AppError, levelOf } from '../errors.ts'
import type { Level, Logger } from '../log.ts'

export type FailureLog = {
  /** Logs a failure that is likely to repeat. Its line has the message of the last error, without a stack. */
  repeated(message: string, error: unknown): void
  /** Logs a failed request: as a failure that repeats if something is unavailable, else in full. */
  request(message: string, error: unknown, fields: Record<string, unknown>): void
  /** Logs what was counted and not logged yet. */
  close(): void
}

const everyMs = 60_000
/** Messages are written in the code, so this is never reached; a caller cannot fill memory. */
const mostMessages = 100

type Count = { level: Level; unsaid: number; error: unknown; timer: NodeJS.Timeout | undefined }

/** `isAway` says whether an error means that something is unavailable; `wait` calls back once, later. */
export function createFailureLog(
  log: Pick<Logger, 'warn' | 'error'>,
  isAway: (error: unknown) => boolean,
  wait: (call: () => void, ms: number) => NodeJS.Timeout = setTimeout,
): FailureLog {
  const counts = new Map<string, Count>()

  /** The next minute begins when a line is logged, and ends without one if nothing failed in it. */
  const say = (message: string, count: Count): void => {
    clearTimeout(count.timer)
    count.timer = undefined
    if (count.unsaid === 0) return void counts.delete(message)
    const at = count.level === 'warn' ? 'warn' : 'error'
    log[at](message, { count: count.unsaid, reason: reasonOf(count.error) })
    count.unsaid = 0
    count.timer = wait(() => say(message, count), everyMs)
    count.timer.unref()
  }
  const repeated = (message: string, error: unknown): void => {
    const count = counts.get(message) ?? { level: 'error', unsaid: 0, error, timer: undefined }
    if (counts.size < mostMessages) counts.set(message, count)
    Object.assign(count, { level: levelOf(error), unsaid: count.unsaid + 1, error })
    if (!count.timer) say(message, count)
  }
  return {
    repeated,
    request(message, error, fields) {
      if (isAway(error)) repeated(message, error)
      else log[levelOf(error)](message, { ...fields, error })
    },
    close() {
      for (const [message, count] of counts) {
        say(message, count)
        clearTimeout(count.timer)
      }
    },
  }
}

/** The message of what an error was caused by in the first place. */
function reasonOf(error: unknown): string {
  const cause = error instanceof AppError ? error.cause : undefined
  if (cause instanceof Error) return cause.message || String((cause as { code?: unknown }).code ?? cause.name)
  return error instanceof Error ? error.message : String(error)
}
