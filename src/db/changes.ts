// Which tables a transaction has written, so that what was remembered of them can be forgotten after the commit.
import type { Verb } from '#lib/resource.ts'
import type { Change, Sql } from './sql.ts'

const statement = /^\s*(?:(INSERT)\s+INTO|(UPDATE)|(DELETE)\s+FROM)\s+([a-z_][a-z0-9_]*)/
const none: readonly Change[] = []
const maxKnown = 2000

/**
 * Reads the changes off the texts of statements. Each is looked at once: verb and table stand before the first value,
 * and that part of the text is the same whenever the statement comes back.
 */
export function createChangeReader(): (query: Sql) => readonly Change[] {
  const known = new Map<string, readonly Change[]>()
  return (query) => {
    const start = query.parts[0]!
    let changes = known.get(start)
    if (!changes) {
      changes = read(start)
      if (known.size >= maxKnown) known.clear()
      known.set(start, changes)
    }
    if (!changes[0]?.startsWith('insert') || !mayUpdate(query)) return changes
    return [...changes, changes[0].replace('insert', 'update') as Change]
  }
}

function read(start: string): readonly Change[] {
  const [, insert, update, remove, table] = statement.exec(start) ?? []
  const verb = (insert ?? update ?? remove)?.toLowerCase() as Verb | undefined
  return verb ? [`${verb} ${table!}`] : none
}

/** The clause follows the values of the rows, and may hold some itself. */
function mayUpdate(query: Sql): boolean {
  return query.parts.some((part) => part.includes('DO UPDATE'))
}

type Ended = { ok: true; changes: ReadonlySet<Change> } | { ok: false }

/** Who listens to the commits of a database. Works that were rolled back say nothing. */
export function createCommits() {
  const listeners: ((changes: ReadonlySet<Change>) => void)[] = []
  return {
    listen: (listener: (changes: ReadonlySet<Change>) => void): void => void listeners.push(listener),
    report(works: readonly Ended[]): void {
      const changes = new Set<Change>()
      for (const work of works) if (work.ok) for (const change of work.changes) changes.add(change)
      if (changes.size > 0) for (const listener of listeners) listener(changes)
    },
  }
}
