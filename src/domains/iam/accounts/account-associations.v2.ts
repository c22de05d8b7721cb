import type { Handlers } from '#app.ts'
import {
  AccountAssociationsService,
  AccountProviderType,
  type AccountAssociation as AssociationMessage,
  CheckStatus,
} from '#gen/pinfold/iam/v2/account_associations_pb.ts'
import { invalid } from '#lib/errors.ts'
import { aDeletion, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import { type AccountAssociation, accountAssociationFields, anAssociation } from './account-associations.model.ts'
import * as service from './account-associations.service.ts'
import { appMessages, readAccounts } from './accounts-on-the-wire.ts'

const rules = { fields: accountAssociationFields, defaultOrder: 'group' }

export const accountAssociations: Handlers<typeof AccountAssociationsService> = {
  async getAccountAssociation(call, { uid }) {
    return toMessage(await service.getAccountAssociation(call, uid))
  },

  async listAccountAssociations(call, request) {
    const { name } = request
    const listed = await service.listAccountAssociations(call, readList(call, request, rules, { name }))
    return listResponse(
      'pinfold.platform.iam.v2.ListAccountAssociationsResponse',
      'accountAssociations',
      listed,
      toMessage,
      request,
    )
  },

  async createAccountAssociation(call, { parent, accountAssociation }) {
    return toMessage(await service.createAccountAssociation(call, parent, fromMessage(accountAssociation)))
  },

  async updateAccountAssociation(call, { accountAssociation, updateMask }) {
    const patch = { paths: updateMask?.paths ?? [], value: fromMessage(accountAssociation) }
    return toMessage(await service.updateAccountAssociation(call, accountAssociation?.uid ?? '', patch))
  },

  async deleteAccountAssociation(call, { uid }) {
    await service.deleteAccountAssociation(call, uid)
    return empty
  },

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
  eventBody(AccountAssociationsService.method.createAccountAssociation, anAssociation, toMessage),
  eventBody(AccountAssociationsService.method.updateAccountAssociation, anAssociation, toMessage),
  eventBody(AccountAssociationsService.method.deleteAccountAssociation, aDeletion, () => null),
]

function cloudOf(type: AccountProviderType): 'amazon' | 'google' | 'azure' {
  if (type === AccountProviderType.AMAZON) return 'amazon'
  if (type === AccountProviderType.GOOGLE) return 'google'
  if (type === AccountProviderType.AZURE) return 'azure'
  throw invalid({ field: 'provider_type', description: 'must name a cloud' })
}

function fromMessage(association: AssociationMessage | undefined) {
  if (!association) throw invalid({ field: 'account_association', description: 'is required' })
  return readAccounts(association)
}

function toMessage(association: AccountAssociation): AssociationMessage {
  const { uid, name, description, amazon, google, azure, github, pinfold } = association
  return {
    $typeName: 'pinfold.platform.iam.v2.AccountAssociation',
    uid,
    name,
    description,
    amazon: amazon && { $typeName: 'pinfold.platform.iam.v2.AccountAssociation.Amazon', ...amazon },
    google: google && { $typeName: 'pinfold.platform.iam.v2.AccountAssociation.Google', ...google },
    azure: azure && { $typeName: 'pinfold.platform.iam.v2.AccountAssociation.Azure', ...azure },
    github: github && {
      $typeName: 'pinfold.platform.iam.v2.AccountAssociation.GitHub',
      appInstallations: appMessages(
        github.appInstallations,
        'pinfold.platform.iam.v2.AccountAssociation.GitHubAppInstallations',
        'pinfold.platform.iam.v2.AccountAssociation.GitHubInstallation',
      ),
    },
    pinfold: pinfold && { $typeName: 'pinfold.platform.iam.v2.AccountAssociation.Vendor', ...pinfold },
    createTime: timestamp(association.createTime),
    updateTime: timestamp(association.updateTime),
  }
}
