// Progress bar of a long command on a terminal.
import type { Terminal } from './command.ts'

type Progress = {
  /** Shows how many items are finished. */
  at(done: number): void
  /** Removes the bar before the summary is printed. */
  [Symbol.dispose](): void
}

const width = 24
const everyMs = 80
const numbers = new Intl.NumberFormat('en')

/** Progress bar on a terminal. Shows nothing if standard error is a file or a pipe. */
export function progressOf(terminal: Terminal, what: string, total: number, now = () => performance.now()): Progress {
  const show = terminal.status?.bind(terminal)
  let shownAt = Number.NEGATIVE_INFINITY
  return {
    at(done) {
      if (!show || (done < total && now() - shownAt < everyMs)) return
      shownAt = now()
      const full = total === 0 ? width : Math.floor((width * Math.min(done, total)) / total)
      const bar = '#'.repeat(full) + '.'.repeat(width - full)
      show(`[${bar}] ${numbers.format(done)} of ${numbers.format(total)} ${what}`)
    },
    [Symbol.dispose]: () => show?.(''),
  }
}
