import type { Verdict } from './gates.model.ts'

/** `since` says from when on it does not pass; without it, it never did. */
export type Judged = Verdict & { since?: () => string | Promise<string> }

export const passes = (reason: string): Judged => ({ denied: false, reason, count: 0, pending: false })
export const waits = (reason: string): Judged => ({ denied: false, reason, count: 0, pending: true })
export const fails = (reason: string, more: Partial<Pick<Judged, 'count' | 'since'>> = {}): Judged => {
  return { ...{ denied: true, reason, count: 0, pending: false }, ...more }
}

export const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`
