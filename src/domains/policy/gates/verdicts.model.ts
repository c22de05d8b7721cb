import type { Verdict } from './gates.model.ts'

/** `since` says from when on it does not pass; without it, it never did. */
export type Judged = Verdict & { since?: () => string | Promise<string> }

const none = { denied: false, count: 0, pending: false, unknownSeverity: 0 }

export const passes = (reason: string): Judged => ({ ...none, reason })
export const waits = (reason: string): Judged => ({ ...none, reason, pending: true })
export const fails = (
  reason: string,
  more: Partial<Pick<Judged, 'count' | 'since' | 'unknownSeverity'>> = {},
): Judged => {
  return { ...none, denied: true, reason, ...more }
}

export const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`
