// Texts of role bindings, and of the explanation of access.
import { counted } from './format.ts'

const bindings = {
  access: 'Access',
  explain: 'Explain',
  explainOf: (who: string) => `Explain the access of ${who}`,
  onlyRolesOf: (who: string) => `Only the roles of ${who} are shown.`,
  hiddenBindings: (count: number) =>
    `You do not have permission to see the role bindings of ${counted(count, 'group')} above. There may be more.`,
}

const explanations = {
  whose: 'Person or service account',
  action: 'Action',
  capabilities: {
    CAP_MANIFEST_LIST: 'pull images',
    CAP_MANIFEST_CREATE: 'push images',
    CAP_TAG_UPDATE: 'update tags',
    CAP_TAG_DELETE: 'delete tags',
    CAP_REPO_CREATE: 'create repositories',
  },
  allowed: 'Allowed: the identity has a role with this permission.',
  notAllowed: 'Not allowed: the identity has no role with this permission.',
  noBindingsOfIdentity: 'The identity has no role here or in a group above, or it does not exist.',
  bindings: 'Role bindings',
  rolesOfExternalGroups: 'Roles from external groups, in current sessions',
  provisionedGroup: 'provisioned over SCIM',
  sentGroup: 'sent at the sign-in',
  effect: 'Effect',
  effects: {
    EFFECT_UNSPECIFIED: 'unknown',
    EFFECT_GRANTS: 'grants the permission',
    EFFECT_ROLE_LACKS_IT: 'the role does not include the permission',
    EFFECT_NOT_ACCEPTED: 'no effect until the person accepts a role in the organization',
    EFFECT_ABOVE_HOME: 'no effect: the identity belongs to a folder below, and has access only in that folder',
  },
  sufficientRoles: 'Roles with this permission:',
  grantors: 'Identities that can grant such a role:',
  refusals: 'Refused registry requests',
  noRefusals: 'The registry has refused no requests here recently.',
  count: 'Count',
}

export const accessWords = { ...bindings, ...explanations }
