// Names of the resources that an audit entry is about. They are stored with the entry, so later changes do not affect it.
import type { App } from '#app.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { isUid, lineage, parentOf, rootOf, top } from '#lib/uid.ts'
import { type AuditEntry, type EntryNames, parseNames } from './audit.model.ts'
import { latestAbout } from './audit.store.ts'

type Named = Pick<AuditEntry, 'subject' | 'actor' | 'body'> & { group: string }

/** Maximum number of resources in a body that are named. */
const maxInBody = 40

/** Returns the names of an entry that is being written and, for a deletion, the resource as its latest entry shows it. */
export async function describeEntry(
  tx: Tx,
  app: Pick<App, 'hooks'>,
  entry: Named & Pick<AuditEntry, 'type'> & { hidesActor: boolean },
  isDeletion: boolean,
): Promise<Pick<AuditEntry, 'names' | 'former'>> {
  const latest = isDeletion ? await latestAbout(tx, entry) : undefined
  const uids = [...uidsOf(entry), ...(latest ? uidsIn(latest.body) : [])]
  const present = await readNames(tx, app, organizationOf(entry), uids, entry.hidesActor ? [] : [entry.actor])
  const names = { ...(latest && parseNames(latest.names)), ...present }
  return { names: JSON.stringify(names), former: latest?.body ?? '' }
}

/** Organization of an entry. For the deletion of an organization, its uid. */
export function organizationOf({ group, subject }: Pick<Named, 'group' | 'subject'>): string {
  return group === top ? rootOf(subject) : rootOf(group)
}

/** Uids of the resources of an entry: actor, resource, scope with all groups above, and the resources in the body. */
export function uidsOf({ subject, actor, body, group }: Named): string[] {
  const all = [subject, actor, ...(actor.includes('/') ? [parentOf(actor)] : []), ...uidsIn(body)]
  const groups = group === top ? [] : lineage(group)
  return [...new Set([...groups, ...all.flatMap((uid) => (isUid(uid) ? [uid, ...lineage(parentOf(uid))] : []))])]
}

/** Present names of resources that members of the organization can see. */
export async function readNames(
  reader: Reader,
  { hooks }: Pick<App, 'hooks'>,
  organization: string,
  uids: readonly string[],
  actors: readonly string[] = [],
): Promise<EntryNames> {
  const names: EntryNames = {}
  for (const read of hooks.resourceNames) {
    for (const { uid, kind, name } of await read(reader, { organization, uids, actors })) names[uid] = [kind, name]
  }
  return names
}

function uidsIn(body: string): string[] {
  const found = new Set<string>()
  JSON.parse(body || 'null', (_, value: unknown) => {
    if (typeof value === 'string' && found.size < maxInBody && isUid(value)) found.add(value)
    return value
  })
  return [...found]
}
