import type { Handlers } from '#app.ts'
import {
  AccountAssociationSchema,
  AccountAssociationsService,
  AccountProviderType,
  type AccountAssociation as AssociationMessage,
  CheckStatus,
} from '#gen/pinfold/iam/v2/account_associations_pb.ts'
import { creating, deleting, getting, listing, updating } from '#lib/contract/handlers.ts'
import { messageOf, required } from '#lib/contract/messages.ts'
import { invalid } from '#lib/errors.ts'
import { type EventBody, eventBody, toDeletionResource } from '#lib/events/event-body.ts'
import { accountAssociationFields, toAssociationResource } from './account-associations.model.ts'
import * as service from './account-associations.service.ts'
import { readAccounts } from './accounts-on-the-wire.ts'

const { method } = AccountAssociationsService
const toMessage = messageOf(AccountAssociationSchema)
const rules = { fields: accountAssociationFields, defaultOrder: 'group' }

export const accountAssociations: Handlers<typeof AccountAssociationsService> = {
  getAccountAssociation: getting(service.getAccountAssociation, toMessage),
  listAccountAssociations: listing(
    method.listAccountAssociations,
    rules,
    ({ name }) => ({ name }),
    service.listAccountAssociations,
    toMessage,
  ),
  createAccountAssociation: creating(
    ['parent', 'accountAssociation'],
    fromMessage,
    service.createAccountAssociation,
    toMessage,
  ),
  updateAccountAssociation: updating('accountAssociation', fromMessage, service.updateAccountAssociation, toMessage),
  deleteAccountAssociation: deleting('uid', service.deleteAccountAssociation),

  async checkAccountAssociation(call, { uid, providerType }) {
    const checked = await service.checkAccountAssociation(call, uid, cloudOf(providerType))
    return {
      $typeName: 'pinfold.platform.iam.v2.CheckAccountAssociationResponse',
      status: checked.ready ? CheckStatus.READY : CheckStatus.NOT_READY,
      reason: checked.ready ? '' : checked.reason,
      message: checked.ready ? '' : checked.message,
    }
  },
}

export const accountAssociationEvents: readonly EventBody[] = [
  eventBody(method.createAccountAssociation, toAssociationResource, toMessage),
  eventBody(method.updateAccountAssociation, toAssociationResource, toMessage),
  eventBody(method.deleteAccountAssociation, toDeletionResource, () => null),
]

function cloudOf(type: AccountProviderType): 'amazon' | 'google' | 'azure' {
  if (type === AccountProviderType.AMAZON) return 'amazon'
  if (type === AccountProviderType.GOOGLE) return 'google'
  if (type === AccountProviderType.AZURE) return 'azure'
  throw invalid({ field: 'provider_type', description: 'must name a cloud' })
}

function fromMessage(association: AssociationMessage | undefined) {
  return readAccounts(required(association, 'account_association'))
}
