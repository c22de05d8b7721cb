// Conversion of account associations between the model and the messages of both versions.
import type { Accounts } from './account-associations.model.ts'

type StoredApps = NonNullable<Accounts['github']>['appInstallations']

/** Message of either version. In both, `installationId` is a 64-bit number. */
export type AccountsMessage = Omit<Accounts, 'github'> & {
  name: string
  description: string
  github?:
    | { appInstallations: Record<string, { installations: { installationId: bigint; name: string }[] }> }
    | undefined
}

/** Reads the fields of a message. Members that protobuf adds are left out. */
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

/** Installation IDs become texts, since large numbers lose digits in JSON. */
function readApps(apps: NonNullable<AccountsMessage['github']>['appInstallations']): StoredApps {
  const entries = Object.entries(apps).map(([app, { installations }]) => {
    const texts = installations.map(({ installationId, name }) => ({ installationId: String(installationId), name }))
    return [app, { installations: texts }] as const
  })
  return Object.fromEntries(entries)
}
