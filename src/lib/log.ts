import type { Writable } from 'node:stream'

const levels = { debug: 10, info: 20, warn: 30, error: 40 } as const
export type Level = keyof typeof levels
const maxWaiting = 64 * 1024
/** Maximum length of text from outside, so that lines stay readable and do not fill the disk. */
const maxText = 8 * 1024
type Fields = Record<string, unknown>

/**
 * Log of JSON lines. The message is static, lower case and without data; data goes in fields. Level `error` means that the
 * operator should act.
 */
export type Logger = {
  [L in Level]: (message: string, fields?: Fields) => void
} & {
  /** Creates a logger that adds `fields` to each of its lines. */
  with(fields: Fields): Logger
  /** Adds `fields` to all later lines, of all loggers with the same output. */
  mark(fields: Fields): void
}

/**
 * Creates a logger. While the event loop is busy, lines are collected and then written together. Lines of level `error` are
 * written at once.
 */
export function createLogger(out: Writable, level: Level = 'info'): Logger & { flush(): void } {
  let waiting = ''
  const flush = () => {
    const text = waiting
    waiting = ''
    if (text !== '') out.write(text)
  }
  const logger = loggerOf(level, { marks: {}, fixed: {} }, (line, at) => {
    if (waiting === '') setImmediate(flush)
    waiting += line
    if (at === 'error' || waiting.length > maxWaiting) flush()
  })
  return { ...logger, flush }
}

/** `marks` are the common fields of a logger and all loggers that were created from it. */
type Added = { marks: Fields; fixed: Fields }

function loggerOf(level: Level, { marks, fixed }: Added, write: (line: string, at: Level) => void): Logger {
  const log = (at: Level) => (message: string, fields?: Fields) => {
    if (levels[at] < levels[level]) return
    const line = { time: new Date().toISOString(), level: at, message, ...marks, ...fixed, ...fields }
    // A replacer makes JSON.stringify several times slower, so it is used only for errors and other objects. Most lines contain
    // only texts and numbers.
    const simple = fields === undefined || Object.values(fields).every(isSimple)
    write(`${simple ? JSON.stringify(line) : JSON.stringify(line, plain)}\n`, at)
  }
  return {
    debug: log('debug'),
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
    with: (fields) => loggerOf(level, { marks, fixed: { ...fixed, ...fields } }, write),
    mark: (fields) => void Object.assign(marks, fields),
  }
}

function isSimple(value: unknown): boolean {
  return typeof value === 'string' ? value.length <= maxText : typeof value !== 'object' && typeof value !== 'bigint'
}

/** Converts a value for JSON. Errors have no enumerable members, so JSON would lose them. Long texts are cut. */
function plain(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'string' && value.length > maxText) return `${value.slice(0, maxText)}…`
  if (!(value instanceof Error)) return value
  return {
    name: value.name,
    message: value.message,
    stack: value.stack,
    ...(value.cause ? { cause: value.cause } : {}),
  }
}
