// Texts of scan results. A result without findings always says whether everything was compared.

import type { Findings, Verdict } from '../data/types.ts'
import { admissionWords } from '../words/admission.ts'
import { digestWords } from '../words/digests.ts'
import { startWords } from '../words/start.ts'

type Coverage = Pick<Findings['coverage'], 'state' | 'summary'>

/** Texts for an image without findings. The second one names the content that was not scanned, and is empty if there is none. */
export function noFindingsTexts({ state, summary }: Coverage): readonly [text: string, unscanned: string] {
  return state === 'COMPARED' ? [digestWords.noneFound, ''] : [digestWords.noneButNotScanned, summary]
}

/** Summary of the content that was not compared. Empty if everything was compared. A server of an earlier release sends none. */
export function unscannedText(coverage: Coverage | undefined): string {
  return coverage === undefined || coverage.state === 'COMPARED' ? '' : coverage.summary
}

/** Text for a search for a vulnerability that finds no image. */
export function noImagesText(unscanned: string): string {
  return unscanned === '' ? startWords.noVulnerableImages : startWords.vulnerabilityUnscanned(unscanned)
}

/** True if the image was not scanned completely. */
export const isUnscanned = ({ coverage }: Pick<Verdict, 'coverage'>): boolean => coverage?.state === 'NOT_SCANNED'

type Badge = { kind: 'good' | 'warn' | 'bad' | 'plain'; text: string }

export function verdictBadge({ mode, result, coverage }: Pick<Verdict, 'mode' | 'result' | 'coverage'>): Badge {
  if (result === 'RESULT_ALLOWED') {
    return isUnscanned({ coverage })
      ? { kind: 'warn', text: admissionWords.passesUnscanned }
      : { kind: 'good', text: admissionWords.passes }
  }
  if (result !== 'RESULT_DENIED') return { kind: 'plain', text: admissionWords.checkFailed }
  return mode === 'POLICY_MODE_DRY_RUN'
    ? { kind: 'warn', text: admissionWords.wouldBeDenied }
    : { kind: 'bad', text: admissionWords.isDenied }
}

/** Reason of a verdict, with the coverage of the scan, as the server states it. */
export function verdictReason({ reason, exception }: Verdict['parameters']): string {
  return [String(reason ?? ''), ...(exception ? [admissionWords.byExemption] : [])].join('; ')
}

/** Text for tags that every policy allows. `unscanned` of them were not scanned completely. */
export function allPassText(count: number, unscanned: number): string {
  return [admissionWords.allPass(count), ...(unscanned > 0 ? [admissionWords.notCompared(unscanned)] : [])].join(' ')
}
