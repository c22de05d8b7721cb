// Compares what a copy answers with what the release answered, but for what has been changed since on purpose.
import { isDeepStrictEqual } from 'node:util'
import type { Answers, Section } from './ask.ts'

/** A change of behavior that a release shows: the answers, the reason, and the new form of the old answer. */
export type Change = {
  why: string
  /** Checks if it applies to the answer of a release to this question. */
  about(question: string, section: Section, release: string): boolean
  /** New answer in place of this old one. */
  now?(answer: any, question: string): unknown
  /** New answer without additions that have no place in the old answer. */
  without?(answer: any, question: string): unknown
}

/** Every question that is not answered as it was, with both answers, or as it should be by `changes`. */
export function differencesOf(
  expected: Answers,
  actual: Answers,
  changes: readonly Change[] = [],
  release = '',
): Record<string, { expected: unknown; actual: unknown }> {
  const differences: Record<string, { expected: unknown; actual: unknown }> = {}
  for (const [section, answers] of Object.entries(expected) as [Section, Record<string, unknown>][]) {
    for (const [question, answer] of Object.entries(answers)) {
      const known = changes.filter((change) => change.about(question, section, release))
      const wanted = known.reduce((old, change) => change.now?.(old, question) ?? old, answer)
      // As JSON, since that is how what was expected was kept.
      const text = JSON.stringify(actual[section]?.[question] ?? null)
      const got = known.reduce<unknown>((all, change) => change.without?.(all, question) ?? all, JSON.parse(text))
      if (!isDeepStrictEqual(got, wanted)) differences[`${section}: ${question}`] = { expected: wanted, actual: got }
    }
  }
  return differences
}
