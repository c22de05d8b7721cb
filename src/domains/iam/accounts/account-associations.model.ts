import { kindOf } from '#lib/events/event-body.ts'
import { descriptionPattern, type Fields, maxNameLength, namePattern } from '#lib/fields.ts'

export type GitHubInstallation = { installationId: string; name: string }

/** Cloud accounts and services that a group is tied to. The blocks are independent. */
export type Accounts = {
  amazon?: { account: string } | undefined
  google?: { projectId: string; projectNumber: string } | undefined
  /** Application IDs by the component that uses them. */
  azure?: { tenantId: string; clientIds: Record<string, string> } | undefined
  /** Installations by the ID of the GitHub app. */
  github?: { appInstallations: Record<string, { installations: GitHubInstallation[] }> } | undefined
  /** Uids of identities by the service that assumes them. */
  pinfold?: { serviceBindings: Record<string, string> } | undefined
}

export const emptyAccounts = {
  amazon: { account: '' },
  google: { projectId: '', projectNumber: '' },
  azure: { tenantId: '', clientIds: {} },
  github: { appInstallations: {} },
  pinfold: { serviceBindings: {} },
} satisfies Accounts

/** Accounts of a group elsewhere. A group has at most one association, so its uid is that of the group. */
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

// These values become part of URLs and names in requests to clouds.
export const accountPatterns = {
  awsAccount: /^[0-9]{12}$/,
  projectId: /^(?:[a-z0-9.-]{1,253}:)?[a-z0-9][a-z0-9-]{0,62}$/,
  projectNumber: /^[A-Za-z0-9-]{1,64}$/,
  tenant: /^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$/,
  component: /^[a-z0-9][a-z0-9._-]{0,62}$/,
  clientId: /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/,
  number: /^[1-9][0-9]{0,18}$/,
}

/** Most applications, apps, installations of an app, and services of one association. */
export const maxAccounts = { clientIds: 20, apps: 20, installations: 100, services: 20 }
