// Log lines for a person at a terminal.
import { styleText } from 'node:util'
import { type Level, type Line, type LineFormat, plain } from '../log.ts'
import { escapeInvisible } from './plain-text.ts'

const styles = { debug: 'gray', info: 'green', warn: 'yellow', error: 'red' } as const satisfies Record<Level, string>

/** Stream that a log is written to. */
type Shown = { isTTY?: boolean }

/**
 * Format of the lines if a person reads the stream, and it is not stored. Otherwise undefined. Container runtimes store the output
 * even if there is a terminal. In a container, the main process has the ID 1, or the variable `container` is set.
 */
export function formatFor({ isTTY = false }: Shown): LineFormat | undefined {
  return isTTY && process.pid !== 1 && !process.env.container ? textLine : undefined
}

/** Line such as `17:28:59 info  serving url=http://127.0.0.1:8080`. Times are UTC. The stack of an error is on lines of its own. */
export function textLine({ time, level, message, ...fields }: Line): string {
  const colored = (style: Parameters<typeof styleText>[0], text: string) =>
    styleText(style, text, { stream: process.stderr })
  const stacks = Object.values(fields).flatMap((one) => (one instanceof Error ? (one.stack ?? []) : []))
  // JSON leaves out undefined fields too.
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  const pairs = given.map(([name, value]) => {
    return ` ${colored('gray', `${name}=`)}${value instanceof Error ? textOf(value.message) : textOf(value)}`
  })
  const head = `${colored('gray', time.slice(11, 19))} ${colored(styles[level], level.padEnd(5))} ${message}`
  const below = stacks.flatMap((stack) =>
    stack
      .split('\n')
      .slice(1)
      .map((one) => `\n  ${escapeInvisible(one.trim())}`),
  )
  return `${head}${pairs.join('')}${below.join('')}\n`
}

/** Value without spaces and quotes as it is, and any other value as JSON. */
function textOf(value: unknown): string {
  if (typeof value === 'string' && /^[\w.:/@+-]+$/.test(value)) return value
  return escapeInvisible(JSON.stringify(value, plain) ?? 'undefined')
}
