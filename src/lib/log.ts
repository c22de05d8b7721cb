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
  /** Writes the lines that were held back, of all loggers with the same output. Later lines are not held back. */
  release(): void
}

export type Line = Fields & { time: string; level: Level; message: string }
/** Converts a line to text that ends with a line break. `fields` are those of this line only. */
export type LineFormat = (line: Line, fields: Fields | undefined) => string

export type LogOptions = {
  /** Format of the lines. Default: JSON. */
  format?: LineFormat | undefined
  /** True to hold back all lines until `release`, `flush`, or a line of level `warn` or `error`. */
  isHeld?: boolean
}

/**
 * Creates a logger. While the event loop is busy, lines are collected and then written together. Lines of level `error` are
 * written at once.
 */
export function createLogger(
  out: Writable,
  level: Level = 'info',
  { format = jsonLine, isHeld = false }: LogOptions = {},
): Logger & { flush(): void } {
  let [waiting, held] = ['', isHeld]
  const flush = () => {
    const text = waiting
    waiting = ''
    held = false
    if (text !== '') out.write(text)
  }
  const write = (line: string, at: Level) => {
    if (waiting === '' && !held) setImmediate(flush)
    waiting += line
    const isUrgent = at === 'error' || (held && at === 'warn')
    if (isUrgent || waiting.length > maxWaiting) flush()
  }
  const release = () => {
    if (held) flush()
  }
  const logger = loggerOf({ level, format, write, release }, { marks: {}, fixed: {} })
  return { ...logger, flush }
}

/** `marks` are the common fields of a logger and all loggers that were created from it. */
type Added = { marks: Fields; fixed: Fields }
type Output = { level: Level; format: LineFormat; write(line: string, at: Level): void; release(): void }

function loggerOf(output: Output, { marks, fixed }: Added): Logger {
  const { level, format, write, release } = output
  const log = (at: Level) => (message: string, fields?: Fields) => {
    if (levels[at] < levels[level]) return
    const line = { time: new Date().toISOString(), level: at, message, ...marks, ...fixed, ...fields }
    write(format(line, fields), at)
  }
  return {
    debug: log('debug'),
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
    with: (fields) => loggerOf(output, { marks, fixed: { ...fixed, ...fields } }),
    mark: (fields) => void Object.assign(marks, fields),
    release,
  }
}

/**
 * Line as JSON. A replacer makes JSON.stringify several times slower, so it is used only if the fields have errors, other objects
 * or long texts. Most lines contain only short texts and numbers.
 */
function jsonLine(line: Line, fields: Fields | undefined): string {
  const isPlain = fields === undefined || Object.values(fields).every(isSimple)
  return `${isPlain ? JSON.stringify(line) : JSON.stringify(line, plain)}\n`
}

function isSimple(value: unknown): boolean {
  return typeof value === 'string' ? value.length <= maxText : typeof value !== 'object' && typeof value !== 'bigint'
}

/** Replacer for JSON.stringify. Errors have no enumerable members, so JSON would lose them. Long texts are cut. */
export function plain(_key: string, value: unknown): unknown {
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
