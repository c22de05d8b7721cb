// Creates, updates and deletes single advisories through the API, without an import.
import { isDeepStrictEqual } from 'node:util'
import type { Call } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { requireGroup } from '#domains/iam/groups/groups.service.ts'
import { alreadyExists, found, invalid, refuseIfAny } from '#lib/errors.ts'
import { isUid, newUid, parentOf } from '#lib/uid.ts'
import { type Advisory, advisoryType } from './advisories.model.ts'
import { newAdvisoryId } from './advisories.service.ts'
import * as store from './advisories.store.ts'
import { advisoryProblems } from './advisory-checks.ts'
import { type NewEvent, newEvent } from './reviews.service.ts'

/** Content of an advisory in a request. The server sets all other fields. Separate methods change events. */
export type AdvisoryContent = Omit<Advisory, 'uid' | 'advisoryId' | 'origin' | 'events' | 'createTime' | 'updateTime'>

/**
 * Creates an advisory. Throws ALREADY_EXISTS if the group has an advisory on the same vulnerability in the same component of the
 * same artifact.
 */
export async function createAdvisory(
  call: Call,
  parent: string,
  { events, ...content }: AdvisoryContent & { events: readonly NewEvent[] },
): Promise<Advisory> {
  if (!isUid(parent)) throw invalid({ field: 'parent', description: 'is not a uid' })
  const uid = newUid(parent)
  const advisory: Advisory = {
    ...content,
    uid,
    advisoryId: newAdvisoryId(),
    // The request does not name the package that the artifact was built from.
    origin: content.artifactName,
    events: events.map((event) => newEvent(call, uid, event)),
    createTime: call.now,
    updateTime: call.now,
  }
  checkContent(advisory)
  await call.app.db.tx(async (tx) => {
    await requireGroup(tx, parent)
    await refuseDuplicate(tx, advisory)
    await store.saveAdvisories(tx, [{ before: undefined, after: advisory, sourceHash: '' }])
    for (const changed of call.app.hooks.advisoriesChanged) await changed(tx, [uid], call.now)
  })
  call.log.info('advisory created', { uid })
  return advisory
}

/**
 * Replaces the content of an advisory. If a later import contains another version of the advisory, that version replaces the
 * content.
 */
export async function updateAdvisory(call: Call, uid: string, content: AdvisoryContent): Promise<Advisory> {
  const advisory = await call.app.db.tx(async (tx) => {
    const before = found(await store.findAdvisory(tx, uid), advisoryType, uid)
    const { origin, artifactName } = before.advisory
    const after: Advisory = {
      ...before.advisory,
      ...content,
      origin: origin === artifactName ? content.artifactName : origin,
      updateTime: call.now,
    }
    checkContent(after)
    if (!isDeepStrictEqual(subjectOf(after), subjectOf(before.advisory))) await refuseDuplicate(tx, after)
    await store.saveAdvisories(tx, [{ before, after, sourceHash: before.sourceHash }])
    for (const changed of call.app.hooks.advisoriesChanged) await changed(tx, [uid], call.now)
    return after
  })
  call.log.info('advisory updated', { uid })
  return advisory
}

/** Deletes an advisory with its events. A later import can create the advisory again. */
export async function deleteAdvisory(call: Call, uid: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    await store.deleteAdvisory(tx, found(await store.findAdvisory(tx, uid), advisoryType, uid))
    for (const changed of call.app.hooks.advisoriesChanged) await changed(tx, [uid], call.now)
  })
  call.log.info('advisory deleted', { uid })
}

/** The server sets `origin` from the artifact name, so errors name only the artifact name. */
function checkContent(advisory: Advisory): void {
  refuseIfAny(advisoryProblems(advisory).filter(({ field }) => field !== 'origin'))
}

/**
 * Throws ALREADY_EXISTS if the advisory now has the subject of another one. Only changes of the subject are checked, because
 * imports can contain several advisories on the same subject.
 */
async function refuseDuplicate(tx: Tx, advisory: Advisory): Promise<void> {
  if (!(await store.hasDuplicate(tx, parentOf(advisory.uid), advisory))) return
  const description =
    'the group already has an advisory for this vulnerability in this component of the artifact; update that one'
  throw alreadyExists(advisoryType, advisory.artifactName, description)
}

/** Subject of an advisory: artifact, component and vulnerability IDs. */
function subjectOf({ aliases, ...advisory }: Advisory) {
  const { artifactName, artifactType, artifactArchitecture, componentName, componentType, componentLocation } = advisory
  return [
    [artifactName, artifactType, artifactArchitecture, componentName, componentType, componentLocation],
    aliases.toSorted(),
  ]
}
