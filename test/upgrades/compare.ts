// Compares what a copy answers with what the release answered, but for what has been changed since on purpose.
import { isDeepStrictEqual } from 'node:util'
import type { Answers, Section } from './ask.ts'

/** A change of behaviour that a release shows: which answers, why, and what the old answer has become. */
export type Change = {
  why: string
  /** Whether it is about the answer to this question of a release. */
  about(question: string, section: Section, release: string): boolean
  /** What is answered now where this was answered then. */
  now(answer: any): unknown
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
      const wanted = changes
        .filter((change) => change.about(question, section, release))
        .reduce((old, change) => change.now(old), answer)
      // As JSON, since that is how what was expected was kept.
      const got: unknown = JSON.parse(JSON.stringify(actual[section]?.[question] ?? null))
      if (!isDeepStrictEqual(got, wanted)) differences[`${section}: ${question}`] = { expected: wanted, actual: got }
    }
  }
  return differences
}
