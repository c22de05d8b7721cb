// State of a scan result: whether everything was compared, and the number of findings of unknown severity.
import type { Gap } from '../image-findings/reports.model.ts'

export type ResultCoverage = {
  state: 'COMPARED' | 'NOT_SCANNED'
  /** Number of findings of unknown severity. */
  unknownSeverity: number
  summary: string
}

/** Limits on the number of gaps in a sentence, and on the number of gaps that an answer lists with a verdict. */
const mostNamed = 5
export const mostListedGaps = 100

const uncounted = 'not counted by this policy'

/**
 * State of a scan result with these gaps. All answers with results use this function. With `policy`, the summary says that the
 * policy does not count findings of unknown severity.
 */
export function resultCoverage(gaps: readonly Gap[], unknownSeverity: number, { policy = false } = {}): ResultCoverage {
  const state = gaps.length === 0 ? 'COMPARED' : 'NOT_SCANNED'
  const compared = state === 'COMPARED' ? 'everything was scanned' : notScanned(gaps)
  const unknown = unknownSeverity === 0 ? '' : unknownText(unknownSeverity, policy)
  return { state, unknownSeverity, summary: [compared, unknown].filter(Boolean).join('; ') }
}

/** Text such as `2 findings of unknown severity, not counted by this policy`. */
export function unknownText(count: number, policy: boolean): string {
  const findings = `${count} finding${count === 1 ? '' : 's'} of unknown severity`
  return policy ? `${findings}, ${uncounted}` : findings
}

/** Adds the coverage summary to a text about findings. So no answer says "no findings" without the summary. */
export function withCoverage(found: string, { state, summary }: ResultCoverage): string {
  return `${found}${state === 'COMPARED' ? ';' : ', but'} ${summary}`
}

/** Text such as `not scanned: PyPI has no data source`. */
export function notScanned(gaps: readonly Gap[]): string {
  const imported = gaps.filter(isImported).map(({ subject }) => subject)
  const others = gaps.filter((one) => !isImported(one))
  const only = `${named(imported)}: compared only with imported advisories, which may be incomplete`
  return [
    ...(others.length === 0 ? [] : [`not scanned: ${named(others.map(gapText))}`]),
    ...(imported.length === 0 ? [] : [only]),
  ].join('; ')
}

const isImported = ({ reason }: Gap): boolean => reason === 'SOURCE_IMPORTED'

/** Joins at most five distinct texts. Adds the number of texts that were left out. */
function named(all: readonly string[]): string {
  const texts = [...new Set(all)]
  const more = texts.length - mostNamed
  return [...texts.slice(0, mostNamed), ...(more > 0 ? [`and ${more} more`] : [])].join(', ')
}

/** Text for one gap, such as `PyPI has no data source`. */
export function gapText({ reason, subject, message }: Gap): string {
  if (reason === 'NO_SOURCE' && subject !== '' && !subject.includes('/')) return `${subject} has no data source`
  return subject === '' ? message : `${subject}: ${message}`
}
