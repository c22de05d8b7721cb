import type { Call } from '#app.ts'
import { emit } from '#domains/outbox/emit.ts'
import { alreadyExists, type FieldViolation, found, invalid } from '#lib/errors.ts'
import { toDeletionResource } from '#lib/events/event-body.ts'
import { checkFields } from '#lib/fields.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import { isUid, newUid, parentOf, rootOf } from '#lib/uid.ts'
import { requireRecentSignIn } from '../access/requirements.ts'
import { groupExists } from '../groups/groups.service.ts'
import { listNodes } from '../groups/list-nodes.ts'
import { requireGrantableRole } from '../roles/roles.service.ts'
import {
  type GroupMapping,
  groupMappingFields,
  groupMappingType,
  maxMappingBatch,
  someGroupMappings,
  toGroupMappingResource,
} from './external-group-role-mappings.model.ts'
import * as store from './external-group-role-mappings.store.ts'
import { requireProvider } from './identity-providers.service.ts'
import { findProvider } from './identity-providers.store.ts'

export type NewMapping = Pick<GroupMapping, 'externalGroupId' | 'roleUid' | 'scope'>

export async function getGroupMapping(call: Call, uid: string): Promise<GroupMapping> {
  return found(await store.findMapping(call.app.db, uid), groupMappingType, uid)
}

export async function listGroupMappings(
  call: Call,
  query: ListQuery<store.MappingFilter>,
): Promise<Listed<GroupMapping>> {
  const { provider } = query.filter
  if (provider !== '' && !isUid(provider)) {
    throw invalid({ field: 'identity_provider_uid', description: 'is not a uid' })
  }
  const { db } = call.app
  // The parent in the filter can be a provider, or a group above it.
  const parentExists = async (uid: string) =>
    (await groupExists(db, uid)) || (await findProvider(db, uid)) !== undefined
  return listNodes(call, query, store.mappingList, { parentExists })
}

/** Creates a group mapping. Throws PERMISSION_DENIED unless the caller holds all capabilities of the role. */
export async function createGroupMapping(call: Call, parent: string, input: NewMapping): Promise<GroupMapping> {
  const mapping: GroupMapping = { ...input, uid: newUid(parent), createTime: call.now }
  checkMapping(mapping, rootOf(parent))
  requireRecentSignIn(call)
  await call.app.db.tx(async (tx) => {
    await requireProvider(tx, parent)
    await requireGrantableRole(tx, call, mapping.roleUid, mapping.scope)
    if (!(await store.insertMapping(tx, mapping))) {
      throw alreadyExists(
        groupMappingType,
        mapping.externalGroupId,
        'the external group is already mapped to this role',
      )
    }
    await emit(tx, call, 'iam.external_group_role_mappings.created', {
      subject: mapping.uid,
      group: rootOf(parent),
      resource: toGroupMappingResource(mapping),
      extensions: { identityprovider: parent },
    })
  })
  call.log.info('group mapping created', { uid: mapping.uid })
  return mapping
}

export async function deleteGroupMapping(call: Call, uid: string): Promise<void> {
  requireRecentSignIn(call)
  await call.app.db.tx(async (tx) => {
    const mapping = found(await store.findMapping(tx, uid), groupMappingType, uid)
    await store.deleteMapping(tx, mapping)
    await emit(tx, call, 'iam.external_group_role_mappings.deleted', {
      subject: uid,
      group: rootOf(uid),
      resource: toDeletionResource({ uid }),
      extensions: { identityprovider: parentOf(uid) },
    })
  })
  call.log.info('group mapping deleted', { uid })
}

/** Deletes group mappings in one transaction, and returns them. Unknown uids are ignored. If none exists, emits no event. */
export async function deleteGroupMappings(
  call: Call,
  parent: string,
  uids: readonly string[],
): Promise<GroupMapping[]> {
  if (uids.length === 0 || uids.length > maxMappingBatch) {
    throw invalid({ field: 'names', description: `must have 1 to ${maxMappingBatch} uids` })
  }
  if (!uids.every(isUid)) throw invalid({ field: 'names', description: 'has a value that is not a uid' })
  requireRecentSignIn(call)
  if (!uids.every((uid) => parentOf(uid) === parent)) {
    throw invalid({ field: 'names', description: 'has a group mapping of another identity provider' })
  }
  const deleted = await call.app.db.tx(async (tx) => {
    await requireProvider(tx, parent)
    const found = await store.findMappings(tx, uids)
    for (const mapping of found) await store.deleteMapping(tx, mapping)
    if (found.length > 0) {
      await emit(tx, call, 'iam.external_group_role_mappings.deleted.batch', {
        subject: parent,
        group: rootOf(parent),
        resource: someGroupMappings({ parent, mappings: found }),
        extensions: { identityprovider: parent },
      })
    }
    return found
  })
  call.log.info('group mappings deleted', { parent, count: deleted.length })
  return deleted
}

function checkMapping(mapping: GroupMapping, organization: string): void {
  const { roleUid, scope } = mapping
  const problems: FieldViolation[] = []
  if (roleUid !== '' && !isUid(roleUid)) problems.push({ field: 'role_uid', description: 'is not a uid' })
  if (scope !== '' && scope !== organization) {
    problems.push({ field: 'scope', description: 'must be the organization of the identity provider' })
  }
  checkFields<GroupMapping>(groupMappingFields, mapping, problems)
}
