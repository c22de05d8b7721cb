import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { emit } from '#domains/outbox/emit.ts'
import { found, permissionDenied } from '#lib/errors.ts'
import { applyPatch, checkFields, type Patch } from '#lib/fields.ts'
import { parentOf, top } from '#lib/uid.ts'
import { requireWholeToken } from '../access/whole-token.ts'
import { aProfile, identityType, type PersonProfile, profileFields } from './identities.model.ts'
import * as store from './identities.store.ts'
import { vouchedBy } from './identities.store.ts'

/** Changes what the caller, a person, says of themselves. Nobody else's is touched. */
export async function updateProfile(call: Call, patch: Patch<PersonProfile>): Promise<PersonProfile> {
  const { caller, now } = call
  const { uid } = caller
  if (caller.operator || parentOf(uid) !== top) throw permissionDenied('only a person has a profile')
  requireWholeToken(caller, 'change the profile')
  const profile = await call.app.db.tx(async (tx) => {
    await requireOwnWord(tx, call)
    const identity = found(await store.findIdentity(tx, uid), identityType, uid)
    const { name, company } = identity
    const jobTitle = await store.findJobTitle(tx, uid)
    const before: PersonProfile = { uid, name, givenName: '', familyName: '', company, jobTitle }
    const after = applyPatch<PersonProfile>(profileFields, before, patch)
    checkFields<PersonProfile>(profileFields, after)
    await store.patchProfile(tx, identity, { ...identity, company: after.company, updateTime: now }, after.jobTitle)
    await emit(tx, call, 'iam.identity.metadata.updated', { subject: uid, group: top, resource: aProfile(after) })
    return after
  })
  call.log.info('profile updated', { paths: patch.paths })
  return profile
}

/** An organisation's provider speaks for a person everywhere only where nobody else knows them. */
async function requireOwnWord(reader: Reader, { caller: { uid, session } }: Call): Promise<void> {
  const organization = session?.organization ?? ''
  if (organization === '' || (await vouchedBy(reader, uid)) === organization) return
  throw permissionDenied('this sign-in counts in one organisation only, and the profile is seen in others')
}
