// Collects the tables that a transaction has written, so that caches of their rows can be cleared after the commit.
import type { Verb } from '#lib/resource.ts'
import type { Change } from './sql.ts'

const statement = /^\s*(?:(INSERT)\s+INTO|(UPDATE)|(DELETE)\s+FROM)\s+([a-z_][a-z0-9_]*)/
const none: readonly Change[] = []

/** Reads the changes of a statement from its text. */
export function changesOf(text: string): readonly Change[] {
  const [, insert, update, remove, table] = statement.exec(text) ?? []
  const verb = (insert ?? update ?? remove)?.toLowerCase() as Verb | undefined
  if (!verb) return none
  return insert && text.includes('DO UPDATE') ? [`insert ${table!}`, `update ${table!}`] : [`${verb} ${table!}`]
}

/** Creates the list of listeners to the commits of a database. */
export function createCommits() {
  const listeners: ((changes: ReadonlySet<Change>) => void)[] = []
  return {
    listen: (listener: (changes: ReadonlySet<Change>) => void): void => void listeners.push(listener),
    /** Reports the changes of the transactions in a commit; those that were rolled back have none. */
    report(works: readonly ReadonlySet<Change>[]): void {
      const changes = works.length === 1 ? works[0]! : new Set(works.flatMap((work) => [...work]))
      if (changes.size > 0) for (const listener of listeners) listener(changes)
    },
  }
}
