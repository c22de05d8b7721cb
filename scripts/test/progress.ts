// Output of `npm test`: each failure at once, and one line of progress.
import type { Unit } from './pool.ts'

const intervalMs = 20_000

/** On a terminal, the line is rewritten in place. Without one, a new line is printed every 20 s. */
export function createProgress(units: readonly Unit[], write: (text: string) => void, width: number | undefined) {
  const began = Date.now()
  const clear = width === undefined ? '' : '\r\x1b[K'
  const counts = { passed: 0, failed: 0, skipped: 0 }
  const failures: string[] = []
  const allMs = units.reduce((sum, unit) => sum + unit.expectedMs, 0)
  let [files, doneMs, shownAt] = [0, 0, began]

  const line = () => {
    const elapsed = Date.now() - began
    const left = files === 0 ? '' : `, about ${minutes((elapsed / doneMs) * (allMs - doneMs))} left`
    const tests = `${counts.passed} tests passed, ${counts.failed} failed, ${counts.skipped} skipped`
    return `${files} of ${units.length} files, ${tests}, ${minutes(elapsed)} elapsed${left}`
  }
  const show = () => {
    // A wrapped line could not be cleared, so the line is cut.
    if (width !== undefined) return write(`${clear}${line().slice(0, width - 1)}`)
    if (Date.now() - shownAt < intervalMs) return
    shownAt = Date.now()
    write(`${line()}\n`)
  }
  return {
    counts,
    failures,
    show,
    passed: () => void counts.passed++,
    skipped: () => void counts.skipped++,
    failed(unit: Unit, name: string, reason: string) {
      counts.failed++
      const test = `${name} (${unit.file} on ${unit.engine})`
      failures.push(test)
      write(`${clear}FAIL ${test}: ${reason}\n`)
    },
    fileDone(unit: Unit) {
      files++
      doneMs += unit.expectedMs
      show()
    },
    /** Other programs read the last line. */
    end() {
      write(clear)
      if (failures.length > 0) write(`\nFailed:\n${failures.map((one) => `  ${one}\n`).join('')}`)
      write(`\n${units.length} files in ${minutes(Date.now() - began)}, ${counts.skipped} tests skipped\n`)
      write(`${counts.passed} passed, ${counts.failed} failed\n`)
    },
  }
}

export type Progress = ReturnType<typeof createProgress>

function minutes(ms: number): string {
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
