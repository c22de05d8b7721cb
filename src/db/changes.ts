// Records which tables a transaction has changed, so that caches of their rows can be cleared after the commit.
import type { Verb } from '#lib/resource.ts'
import type { Change } from './sql.ts'

const statement = /^\s*(?:(INSERT)\s+INTO|(UPDATE)|(DELETE)\s+FROM)\s+([a-z_][a-z0-9_]*)/
const none: readonly Change[] = []

/** Changes that a statement makes, read from its text. */
export function changesOf(text: string): readonly Change[] {
  const [, insert, update, remove, table] = statement.exec(text) ?? []
  const verb = (insert ?? update ?? remove)?.toLowerCase() as Verb | undefined
  if (!verb) return none
  return insert && text.includes('DO UPDATE') ? [`insert ${table!}`, `update ${table!}`] : [`${verb} ${table!}`]
}

/** Creates the listeners to commits of a database. */
export function createCommits() {
  const listeners: ((changes: ReadonlySet<Change>) => void)[] = []
  return {
    listen: (listener: (changes: ReadonlySet<Change>) => void): void => void listeners.push(listener),
    /**
     * Reports a commit to the listeners, with the changes of each transaction in it. Transactions that were rolled back are not
     * included.
     */
    report(works: readonly ReadonlySet<Change>[]): void {
      const changes = works.length === 1 ? works[0]! : new Set(works.flatMap((work) => [...work]))
      if (changes.size > 0) for (const listener of listeners) listener(changes)
    },
  }
}
