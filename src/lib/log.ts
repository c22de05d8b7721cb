import type { Writable } from 'node:stream'

const levels = { debug: 10, info: 20, warn: 30, error: 40 } as const
export type Level = keyof typeof levels
export type Fields = Record<string, unknown>

/** JSON lines. The message is static, lower case and without data; data goes in fields. `error` means somebody should act. */
export type Logger = {
  [L in Level]: (message: string, fields?: Fields) => void
} & {
  /** A logger that adds `fields` to every line. */
  with(fields: Fields): Logger
}

export function createLogger(out: Writable, level: Level = 'info', fixed: Fields = {}): Logger {
  const write = (at: Level) => (message: string, fields?: Fields) => {
    if (levels[at] < levels[level]) return
    const line = { time: new Date().toISOString(), level: at, message, ...fixed, ...fields }
    out.write(`${JSON.stringify(line, plain)}\n`)
  }
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    with: (fields) => createLogger(out, level, { ...fixed, ...fields }),
  }
}

/** Errors have no enumerable members, so JSON would lose them. */
function plain(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (!(value instanceof Error)) return value
  return {
    name: value.name,
    message: value.message,
    stack: value.stack,
    ...(value.cause ? { cause: value.cause } : {}),
  }
}
