// Conversions that the messages of both versions of the contract share.
import type { Accounts } from './account-associations.model.ts'

type StoredApps = NonNullable<Accounts['github']>['appInstallations']

/** Message of either version. Its `installationId` is a 64-bit number. */
export type AccountsMessage = Omit<Accounts, 'github'> & {
  name: string
  description: string
  github?:
    | { appInstallations: Record<string, { installations: { installationId: bigint; name: string }[] }> }
    | undefined
}

/** Reads the fields of a message, without its protobuf members. */
export function readAccounts(message: AccountsMessage): Accounts & { name: string; description: string } {
  const { name, description, amazon, google, azure, github, pinfold } = message
  return {
    name,
    description,
    amazon: amazon && { account: amazon.account },
    google: google && { projectId: google.projectId, projectNumber: google.projectNumber },
    azure: azure && { tenantId: azure.tenantId, clientIds: azure.clientIds },
    github: github && { appInstallations: readApps(github.appInstallations) },
    pinfold: pinfold && { serviceBindings: pinfold.serviceBindings },
  }
}

/** IDs as text, since numbers in JSON lose digits. */
function readApps(apps: NonNullable<AccountsMessage['github']>['appInstallations']): StoredApps {
  const entries = Object.entries(apps).map(([app, { installations }]) => {
    const texts = installations.map(({ installationId, name }) => ({ installationId: String(installationId), name }))
    return [app, { installations: texts }] as const
  })
  return Object.fromEntries(entries)
}
