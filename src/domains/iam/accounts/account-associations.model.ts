import { kindOf } from '#lib/events/event-body.ts'
import { descriptionPattern, type Fields, maxNameLength, namePattern } from '#lib/fields.ts'

export type GitHubInstallation = { installationId: string; name: string }

/** Cloud accounts and services that are linked to a group. Each member can be set independently. */
export type Accounts = {
  amazon?: { account: string } | undefined
  google?: { projectId: string; projectNumber: string } | undefined
  /** Application IDs in Azure, by the component that uses them. */
  azure?: { tenantId: string; clientIds: Record<string, string> } | undefined
  /** Installations of GitHub apps, by the ID of the app. */
  github?: { appInstallations: Record<string, { installations: GitHubInstallation[] }> } | undefined
  /** Uids of identities, by the service that acts as them. */
  pinfold?: { serviceBindings: Record<string, string> } | undefined
}

export const emptyAccounts = {
  amazon: { account: '' },
  google: { projectId: '', projectNumber: '' },
  azure: { tenantId: '', clientIds: {} },
  github: { appInstallations: {} },
  pinfold: { serviceBindings: {} },
} satisfies Accounts

/**
 * Accounts at clouds and at GitHub that are linked to a group. A group has at most one association, with the same uid as the
 * group.
 */
export type AccountAssociation = Accounts & {
  uid: string
  name: string
  description: string
  createTime: string
  updateTime: string
}

export const toAssociationResource = kindOf<AccountAssociation>('association')

export const accountAssociationType = 'iam.pinfold.dev/AccountAssociation'

export const accountAssociationFields = {
  uid: { column: 'uid', sort: true },
  group: { column: 'uid', sort: true },
  name: { column: 'name', sort: true, update: true, required: true, pattern: namePattern, maxLength: maxNameLength },
  description: { column: 'description', update: true, pattern: descriptionPattern },
  amazon: { column: 'accounts', update: true },
  google: { column: 'accounts', update: true },
  azure: { column: 'accounts', update: true },
  github: { column: 'accounts', update: true },
  pinfold: { column: 'accounts', update: true },
  createTime: { column: 'create_time', sort: true },
  updateTime: { column: 'update_time', sort: true },
} as const satisfies Fields<AccountAssociation & { group: string }>

// Patterns of values that become part of URLs and names in requests to clouds.
export const accountPatterns = {
  awsAccount: /^[0-9]{12}$/,
  projectId: /^(?:[a-z0-9.-]{1,253}:)?[a-z0-9][a-z0-9-]{0,62}$/,
  projectNumber: /^[A-Za-z0-9-]{1,64}$/,
  tenant: /^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$/,
  component: /^[a-z0-9][a-z0-9._-]{0,62}$/,
  clientId: /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/,
  number: /^[1-9][0-9]{0,18}$/,
}

/** Most Azure applications, GitHub apps, installations of an app, and services of one association. */
export const maxAccounts = { clientIds: 20, apps: 20, installations: 100, services: 20 }
