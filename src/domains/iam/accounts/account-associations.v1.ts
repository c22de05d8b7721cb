// Version 1 of account associations. They are named by their group, lists are complete, and a PUT replaces an association.
import type { Handlers } from '#app.ts'
import {
  AccountAssociationsSchema,
  AccountAssociationsCheckRequest_AccountType as AccountType,
  GroupAccountAssociations,
  AccountAssociationsStatus_State as State,
} from '#gen/pinfold/iam/v1/account_associations_pb.ts'
import { deleting } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { invalid } from '#lib/errors.ts'
import { type EventBody, eventBody, toDeletionResource } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { toAssociationResource } from './account-associations.model.ts'
import * as service from './account-associations.service.ts'
import { readAccounts } from './accounts-on-the-wire.ts'

const toMessage = messageOf(AccountAssociationsSchema, { group: 'uid' })
const replaced = ['name', 'description', 'amazon', 'google', 'azure', 'github', 'pinfold']

export const accountAssociationsV1: Handlers<typeof GroupAccountAssociations> = {
  async create(call, association) {
    return toMessage(await service.createAccountAssociation(call, association.group, readAccounts(association)))
  },

  async update(call, association) {
    const patch = { paths: replaced, value: readAccounts(association) }
    return toMessage(await service.updateAccountAssociation(call, association.group, patch))
  },

  async list(call, { group, name }) {
    const scope = { uidp: undefined, id: group }
    const associations = await wholeList(call, scope, { name }, service.listAccountAssociations)
    return { $typeName: 'pinfold.platform.iam.AccountAssociationsList', items: associations.map(toMessage) }
  },

  delete: deleting('group', service.deleteAccountAssociation),

  async check(call, { group, accountType }) {
    const checked = await service.checkAccountAssociation(call, group, cloudOf(accountType))
    return {
      $typeName: 'pinfold.platform.iam.AccountAssociationsStatus',
      ready: checked.ready ? State.Ready : State.NotReady,
      reason: checked.ready ? '' : checked.reason,
      message: checked.ready ? '' : checked.message,
    }
  },
}

export const accountAssociationEventsV1: readonly EventBody[] = [
  eventBody(GroupAccountAssociations.method.create, toAssociationResource, toMessage),
  eventBody(GroupAccountAssociations.method.update, toAssociationResource, toMessage),
  eventBody(GroupAccountAssociations.method.delete, toDeletionResource, () => null),
]

function cloudOf(type: AccountType): 'amazon' | 'google' | 'azure' {
  if (type === AccountType.AMAZON) return 'amazon'
  if (type === AccountType.GOOGLE) return 'google'
  if (type === AccountType.AZURE) return 'azure'
  throw invalid({ field: 'account_type', description: 'must name a cloud' })
}
