// Compares what a copy answers with what the release answered, but for what has been changed since on purpose.
import { isDeepStrictEqual } from 'node:util'
import type { Answers, Section } from './ask.ts'

/** A change of behaviour that a release shows: which answers, why, and what the old answer has become. */
export type Change = {
  why: string
  /** Whether it is about the answer to this question of a release. */
  about(question: string, section: Section, release: string): boolean
  /** What is answered now where this was answered then. */
  now?(answer: any, question: string): unknown
  /** What is answered now without what is new, where that has no place of its own in the old answer. */
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
